import { Section_Kind, Section_NodeType, type Section } from "@sayso/client/proto/request";

/** A section with its nested sections. */
export interface SectionNode {
  section: Section;
  children: SectionNode[];
}

export type GroupName = "Messages" | "Tools" | "Request options";

export interface SectionTree {
  /** Top-level sections by group, in reading order. */
  groups: { name: GroupName; nodes: SectionNode[] }[];
  byId: ReadonlyMap<string, SectionNode>;
  /** Sections of a tool call or result, by the id of the call. */
  byCall: ReadonlyMap<string, readonly Section[]>;
}

function groupOf(section: Section): GroupName {
  switch (section.node) {
    case Section_NodeType.TOOL_SCHEMA:
      return "Tools";
    case Section_NodeType.REQUEST_OPTION:
      return "Request options";
    default:
      return "Messages";
  }
}

/** Nests sections under their parents. A section whose parent is unknown stands at the top. */
export function buildTree(sections: readonly Section[]): SectionTree {
  const byId = new Map<string, SectionNode>();
  const byCall = new Map<string, Section[]>();
  const groups: SectionTree["groups"] = (["Messages", "Tools", "Request options"] as const).map((name) => ({
    name,
    nodes: [],
  }));
  for (const section of sections) {
    const node: SectionNode = { section, children: [] };
    byId.set(section.id, node);
    const call = section.tool?.id;
    if (call !== undefined && section.node !== Section_NodeType.TAG) {
      const same = byCall.get(call);
      if (same) same.push(section);
      else byCall.set(call, [section]);
    }
    const parent = section.parent === undefined ? undefined : byId.get(section.parent);
    if (parent) parent.children.push(node);
    else groups.find(({ name }) => name === groupOf(section))?.nodes.push(node);
  }
  return { groups: groups.filter(({ nodes }) => nodes.length > 0), byId, byCall };
}

/** All sections beneath a node, itself first. */
export function flatten(node: SectionNode): Section[] {
  return [node.section, ...node.children.flatMap(flatten)];
}

/** The top-level node that holds a section. */
export function rootOf(tree: SectionTree, id: string): SectionNode | undefined {
  let node = tree.byId.get(id);
  while (node?.section.parent !== undefined) {
    const parent = tree.byId.get(node.section.parent);
    if (!parent) break;
    node = parent;
  }
  return node;
}

/** Tool calls or results that answer those in a section and that are not within it. Without them, the upstream rejects the request. */
export function pairedSections(tree: SectionTree, id: string): Section[] {
  const node = tree.byId.get(id);
  if (!node) return [];
  const own = new Set(flatten(node).map((section) => section.id));
  const paired = new Map<string, Section>();
  for (const section of flatten(node)) {
    if (section.tool?.id === undefined || section.node === Section_NodeType.TAG) continue;
    for (const other of tree.byCall.get(section.tool.id) ?? []) {
      if (!own.has(other.id) && !other.deleted && isCall(other) !== isCall(section)) paired.set(other.id, other);
    }
  }
  return [...paired.values()].map((section) => widened(tree, section, paired));
}

const isCall = (section: Section): boolean => section.node === Section_NodeType.TOOL_CALL;

/** The whole message in place of a part, if nothing else is in it: an empty message is an error. */
function widened(tree: SectionTree, section: Section, gone: ReadonlyMap<string, Section>): Section {
  const parent = section.parent === undefined ? undefined : tree.byId.get(section.parent);
  if (!parent) return section;
  const others = parent.children.filter(
    ({ section: child }) =>
      child.node !== Section_NodeType.METADATA && child.id !== section.id && !child.deleted && !gone.has(child.id),
  );
  return others.length === 0 ? parent.section : section;
}

/** Position of a section among the messages, from 1. `undefined` for others. */
export function messageNumber(tree: SectionTree, id: string): number | undefined {
  const root = rootOf(tree, id);
  const messages = tree.groups.find(({ name }) => name === "Messages");
  const index = root && messages ? messages.nodes.indexOf(root) : -1;
  return index < 0 ? undefined : index + 1;
}

const CAPTURABLE: ReadonlySet<Section_NodeType> = new Set([
  Section_NodeType.MESSAGE,
  Section_NodeType.TOOL_SCHEMA,
  Section_NodeType.RAW,
]);

/** Ids of the first sections at the top, whose edits are captured. */
export function firstSections(tree: SectionTree, limit: number): ReadonlySet<string> {
  const ids = tree.groups.flatMap(({ nodes }) =>
    nodes.filter(({ section }) => CAPTURABLE.has(section.node)).map(({ section }) => section.id),
  );
  return new Set(ids.slice(0, limit));
}

/** `true` for sections that open as their label only. */
export function startsCollapsed(node: SectionNode, index: number, total: number): boolean {
  const { section } = node;
  if (section.collapsed || section.deleted || section.node === Section_NodeType.REQUEST_OPTION) return true;
  if (section.edited) return false;
  if (section.kind === Section_Kind.TOOL) return true;
  if (section.kind === Section_Kind.SYSTEM) return section.contentSize > 600n;
  return index < total - OPEN_AT_END;
}

const OPEN_AT_END = 8;
