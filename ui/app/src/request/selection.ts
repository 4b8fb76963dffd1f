import { Section_ContentKind, Section_Kind, Section_NodeType, type Section } from "@sayso/client/proto/request";

import { flatten, pairedSections, rootOf, type SectionTree } from "./tree.js";

/** Effect of an action on selected messages, before it is taken. */
export interface BulkPlan {
  /** Sections to delete, or results to shrink, in order. */
  targets: Section[];
  /** Among them, sections that go because their pair goes. */
  paired: Section[];
  tokensSaved: number;
}

const tokensOf = (section: Section): number => Number(section.tokens?.count ?? 0n);

/** Deletion of selected sections, with the tool calls and results that would be left without a pair. */
export function planDelete(tree: SectionTree, selected: ReadonlySet<string>): BulkPlan {
  const targets = new Map<string, Section>();
  for (const id of selected) {
    const section = tree.byId.get(id)?.section;
    if (section && section.deletable && !section.deleted) targets.set(id, section);
  }
  const paired = new Map<string, Section>();
  for (const id of targets.keys()) {
    for (const other of pairedSections(tree, id)) {
      const root = rootOf(tree, other.id);
      if (targets.has(other.id) || (root && targets.has(root.section.id))) continue;
      paired.set(other.id, other);
    }
  }
  const all = [...targets.values(), ...paired.values()];
  return { targets: all, paired: [...paired.values()], tokensSaved: sum(all.map(tokensOf)) };
}

/** Messages before a selected one. Instructions stay. */
export function planKeepFrom(tree: SectionTree, id: string): BulkPlan {
  const messages = tree.groups.find(({ name }) => name === "Messages")?.nodes ?? [];
  const at = messages.findIndex(({ section }) => section.id === id);
  const earlier = messages
    .slice(0, Math.max(0, at))
    .filter(({ section }) => section.kind !== Section_Kind.SYSTEM && section.node === Section_NodeType.MESSAGE)
    .map(({ section }) => section.id);
  return planDelete(tree, new Set(earlier));
}

const KEEP_HEAD = 2_000;
const KEEP_TAIL = 1_000;

/** Tool results that become shorter: their first 2,000 and last 1,000 bytes stay. */
export function planShrink(tree: SectionTree, selected: ReadonlySet<string>): BulkPlan {
  const targets = new Map<string, Section>();
  for (const id of selected) {
    const node = tree.byId.get(id);
    if (!node) continue;
    for (const section of flatten(node)) {
      const isResult =
        section.kind === Section_Kind.TOOL &&
        section.node === Section_NodeType.CONTENT_PART &&
        section.contentKind === Section_ContentKind.TEXT;
      if (isResult && !section.deleted && section.contentSize > BigInt(KEEP_HEAD + KEEP_TAIL)) {
        targets.set(section.id, section);
      }
    }
  }
  const saved = [...targets.values()].map((section) => {
    const kept = (KEEP_HEAD + KEEP_TAIL) / Number(section.contentSize);
    return Math.round(tokensOf(section) * (1 - kept));
  });
  return { targets: [...targets.values()], paired: [], tokensSaved: sum(saved) };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
