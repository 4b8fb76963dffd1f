import type { Section } from "@sayso/client/proto/request";

import { count } from "../diff/words.js";
import { firstSections, startsCollapsed, type GroupName, type SectionNode, type SectionTree } from "./tree.js";

/** An item of the virtual list. */
export type Row =
  | { kind: "pinned"; nodes: SectionNode[] }
  | { kind: "heading"; name: GroupName; note: string }
  | { kind: "break"; text: string }
  | { kind: "section"; node: SectionNode; isPinnedBelow: boolean }
  | { kind: "omitted"; text: string }
  | { kind: "side" };

export interface RowOptions {
  tree: SectionTree;
  /** Ids of pinned sections, in display order. */
  pinned: readonly string[];
  /** Id of the first section at the top behind the usable cache. */
  cacheBreak: string | undefined;
  /** Number of leading sections that are shown while edits are captured. */
  captured: number | undefined;
  /** Only metadata of the tree: option sections stand in the side pane. */
  showOptions: boolean;
  /** The side pane stands below the sections. */
  sideBelow: boolean;
}

/** Lays out the list: the pinned group, groups with headings, and the side pane in a narrow window. */
export function listRows(options: RowOptions): Row[] {
  const { tree } = options;
  const rows: Row[] = [];
  const pinned = options.pinned
    .map((id) => tree.byId.get(id))
    .filter((node): node is SectionNode => node !== undefined);
  if (pinned.length > 0) rows.push({ kind: "pinned", nodes: pinned });
  const isPinned = new Set(pinned.map(({ section }) => section.id));
  const shown = options.captured === undefined ? undefined : firstSections(tree, options.captured);
  for (const { name, nodes } of tree.groups) {
    if (name === "Request options" && !options.showOptions) continue;
    const visible = nodes.filter(
      ({ section }) => name === "Request options" || shown === undefined || shown.has(section.id) || section.edited,
    );
    if (visible.length > 0) rows.push({ kind: "heading", name, note: groupNote(nodes.map(({ section }) => section)) });
    for (const node of visible) {
      if (node.section.id === options.cacheBreak) {
        rows.push({ kind: "break", text: "Cache broken from here. The next section is the first that changed." });
      }
      // A pinned section stands in the pinned group only.
      if (!isPinned.has(node.section.id)) rows.push({ kind: "section", node, isPinnedBelow: false });
    }
    const omitted = nodes.length - visible.length;
    if (omitted > 0) {
      rows.push({ kind: "omitted", text: `${count(omitted, "section")} not captured. They are sent as they are.` });
    }
  }
  if (options.sideBelow) rows.push({ kind: "side" });
  return rows;
}

function groupNote(sections: readonly Section[]): string {
  const deleted = sections.filter((section) => section.deleted).length;
  return count(sections.length, "section") + (deleted === 0 ? "" : `, ${deleted} deleted`);
}

export function rowKey(row: Row): string {
  switch (row.kind) {
    case "heading":
      return `heading:${row.name}`;
    case "section":
      return row.node.section.id;
    case "omitted":
      return `omitted:${row.text}`;
    default:
      return row.kind;
  }
}

/** Expected height in pixels, before a row is measured. */
export function estimateRow(row: Row, isOpen: (id: string) => boolean): number {
  switch (row.kind) {
    case "pinned":
      return 44 + row.nodes.length * 40;
    case "section":
      return isOpen(row.node.section.id) ? 60 + Math.min(400, row.node.children.length * 90) : 40;
    case "side":
      return 600;
    default:
      return 24;
  }
}

/** Ids of the sections that are open at first. */
export function initiallyOpen(tree: SectionTree): Set<string> {
  const open = new Set<string>();
  for (const { nodes } of tree.groups) {
    nodes.forEach((node, index) => {
      if (!startsCollapsed(node, index, nodes.length)) open.add(node.section.id);
    });
  }
  return open;
}
