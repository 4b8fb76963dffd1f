import { RowPages } from "../diff/rowPages.js";
import type { DiffFile, FetchPage } from "../diff/rows.js";
import type { PanelActions } from "./props.js";
import { selectionOf } from "./selection.js";
import type { PanelState } from "./state.js";

/** Pages of the files of one preview. An edited file has the pages of its edited text. */
export class PageSet {
  private readonly pages = new Map<string, { key: string; pages: RowPages }>();
  private hash = "";

  constructor(private actions: PanelActions) {}

  /** Later pages come from these actions. */
  use(actions: PanelActions): void {
    this.actions = actions;
  }

  /** Pages of a file in the present state. */
  of(file: DiffFile, state: PanelState): RowPages {
    if (state.review.previewHash !== this.hash) {
      this.close();
      this.hash = state.review.previewHash;
    }
    const edited = editedText(state, file.path);
    const key = edited === undefined ? "" : `edited\n${edited}`;
    const known = this.pages.get(file.path);
    if (known?.key === key) return known.pages;
    known?.pages.close();
    const pages = this.create(file.path, edited);
    this.pages.set(file.path, { key, pages });
    return pages;
  }

  close(): void {
    for (const { pages } of this.pages.values()) pages.close();
    this.pages.clear();
  }

  private create(path: string, edited: string | undefined): RowPages {
    const fetchPage: FetchPage = (request) =>
      edited === undefined ? this.actions.fetchPage(request) : this.actions.previewEdit(path, edited);
    return new RowPages({
      path,
      layout: "unified",
      wholeFile: false,
      fetchPage,
      ...(edited === undefined && { previewHash: this.hash, onOtherHash: () => this.actions.onOtherHash() }),
    });
  }
}

/** Edited text of a file: kept, or shown for confirmation. */
export function editedText(state: PanelState, path: string): string | undefined {
  const { dialog } = state;
  if (dialog?.kind === "edited" && dialog.subject.kind === "file" && dialog.subject.path === path) return dialog.text;
  return selectionOf(state.selection, path).edited;
}
