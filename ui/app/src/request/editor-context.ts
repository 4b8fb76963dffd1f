import { createContext } from "preact";
import { useContext } from "preact/hooks";

import type { Section } from "@sayso/client/proto/request";
import type { ShowRequestResponse } from "@sayso/client/proto/request_service";

import { announce } from "../announce.js";
import { formatNumber } from "../diff/words.js";
import type { PinMove } from "./order.js";
import type { RequestModel } from "./request-model.js";
import { pairedSections, type SectionTree } from "./tree.js";
import type { ViewState } from "./view-state.js";
import { cardTitle } from "./words.js";

/** The parts that each component of the editor needs. */
export interface Editor {
  model: RequestModel;
  view: ViewState;
  show: ShowRequestResponse;
  tree: SectionTree;
  /** The sections can be edited. */
  canEdit: boolean;
  /** A call is under way, or the connection is lost. */
  isBlocked: boolean;
}

const Context = createContext<Editor | null>(null);

export const EditorProvider = Context.Provider;

export function useEditor(): Editor {
  const editor = useContext(Context);
  if (editor === null) throw new Error("useEditor is called outside EditorProvider");
  return editor;
}

export function nameOf(editor: Pick<Editor, "tree">, section: Section): string {
  const children = editor.tree.byId.get(section.id)?.children.map((child) => child.section) ?? [];
  return cardTitle(section, children);
}

/** Deletes a section. With a paired tool call or result, asks first which of them go. */
export async function requestDeletion(editor: Editor, section: Section): Promise<void> {
  if (pairedSections(editor.tree, section.id).length > 0) {
    editor.view.askDeletion(section.id);
    return;
  }
  await deleteSections(editor, [section]);
}

export async function deleteSections(editor: Editor, sections: readonly Section[]): Promise<void> {
  editor.view.askDeletion(null);
  let saved = 0n;
  for (const { id } of sections) {
    const answer = await editor.model.edit({ edit: { case: "delete", value: section(id) } });
    if (!answer) return;
    saved += answer.tokensSavedHere;
  }
  const [first] = sections;
  const subject = sections.length === 1 && first ? nameOf(editor, first) : `${sections.length} sections`;
  announce(`${subject}: deleted, ${formatNumber(Number(saved))} tokens saved`);
}

export async function restoreSection(editor: Editor, { id, label }: Section): Promise<void> {
  const answer = await editor.model.edit({ edit: { case: "restore", value: section(id) } });
  if (answer) announce(`${label}: restored`);
}

export async function pinSection(editor: Editor, target: Section): Promise<void> {
  const edit = target.pinned
    ? ({ case: "unpin", value: section(target.id) } as const)
    : ({ case: "pin", value: { target: section(target.id) } } as const);
  if (await editor.model.edit({ edit })) announce(target.pinned ? "Unpinned" : "Pinned to the top");
}

export async function reorderPin(editor: Editor, id: string, move: PinMove): Promise<void> {
  const { before } = move;
  const answer = await editor.model.edit({
    edit: { case: "pin", value: { target: section(id), ...(before === undefined ? {} : { before }) } },
  });
  if (answer) announce(`Moved to place ${move.order.indexOf(id) + 1} of ${move.order.length} pinned sections`);
}

export async function undoEdit({ model, show }: Editor): Promise<void> {
  if (show.edits.length === 0) return;
  if (await model.edit({ edit: { case: "undo", value: {} } }))
    announce(`Undone: ${show.edits.at(-1)?.targetPath ?? ""}`);
}

export async function redoEdit({ model, show }: Editor): Promise<void> {
  if (show.undone.length === 0) return;
  if (await model.edit({ edit: { case: "redo", value: {} } })) {
    announce(`Redone: ${show.undone.at(-1)?.targetPath ?? ""}`);
  }
}

function section(id: string): { target: { case: "section"; value: string } } {
  return { target: { case: "section", value: id } };
}
