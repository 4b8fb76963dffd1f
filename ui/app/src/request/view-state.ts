import { signal, type ReadonlySignal } from "@preact/signals";

import { initiallyOpen } from "./rows.js";
import type { SectionTree } from "./tree.js";

/** A leaf in edit mode. */
export interface LeafDraft {
  path: string;
  text: string;
  problem: string | null;
}

/** State of the editor's view, which survives that a card leaves the screen. */
export class ViewState {
  readonly #open = signal<ReadonlySet<string>>(new Set());
  readonly #inTree = signal<ReadonlySet<string>>(new Set());
  readonly #toggled = signal<ReadonlySet<string>>(new Set());
  readonly #selected = signal<ReadonlySet<string> | null>(null);
  readonly #draft = signal<LeafDraft | null>(null);
  readonly #deletion = signal<string | null>(null);
  readonly #chip = signal<string | null>(null);
  #isFresh = true;

  get open(): ReadonlySignal<ReadonlySet<string>> {
    return this.#open;
  }
  /** Sections that show the tree of keys and values. */
  get inTree(): ReadonlySignal<ReadonlySet<string>> {
    return this.#inTree;
  }
  /** Groups of the tree whose state differs from the initial one, by path. */
  get toggled(): ReadonlySignal<ReadonlySet<string>> {
    return this.#toggled;
  }
  /** Selected messages; `null` outside selection. */
  get selected(): ReadonlySignal<ReadonlySet<string> | null> {
    return this.#selected;
  }

  /** The leaf in edit mode. */
  get draft(): ReadonlySignal<LeafDraft | null> {
    return this.#draft;
  }
  /** Id of a section whose deletion waits for a choice about the paired sections. */
  get deletion(): ReadonlySignal<string | null> {
    return this.#deletion;
  }
  /** Id of the section that is shown with its difference. */
  get chip(): ReadonlySignal<string | null> {
    return this.#chip;
  }

  writeDraft(draft: LeafDraft | null): void {
    this.#draft.value = draft;
  }

  askDeletion(id: string | null): void {
    this.#deletion.value = id;
  }

  showChip(id: string | null): void {
    this.#chip.value = id;
  }

  /** Opens sections when a request is shown for the first time. */
  start(tree: SectionTree): void {
    if (!this.#isFresh) return;
    this.#isFresh = false;
    this.#open.value = initiallyOpen(tree);
  }

  toggle(id: string): void {
    this.#open.value = without(this.#open.peek(), id) ?? withItem(this.#open.peek(), id);
  }

  /** Opens a collapsed section and shows its keys and values. */
  edit(id: string): void {
    this.#open.value = withItem(this.#open.peek(), id);
    this.#inTree.value = withItem(this.#inTree.peek(), id);
  }

  leaveTree(id: string): void {
    this.#inTree.value = without(this.#inTree.peek(), id) ?? this.#inTree.peek();
    this.#draft.value = null;
  }

  toggleGroup(path: string): void {
    this.#toggled.value = without(this.#toggled.peek(), path) ?? withItem(this.#toggled.peek(), path);
  }

  startSelecting(): void {
    this.#selected.value = new Set();
  }

  stopSelecting(): void {
    this.#selected.value = null;
  }

  select(id: string): void {
    const selected = this.#selected.peek() ?? new Set<string>();
    this.#selected.value = without(selected, id) ?? withItem(selected, id);
  }

  collapseAll(): void {
    this.#open.value = new Set();
    this.#inTree.value = new Set();
  }

  openAll(ids: readonly string[]): void {
    this.#open.value = new Set(ids);
  }
}

const withItem = (set: ReadonlySet<string>, item: string): ReadonlySet<string> => new Set([...set, item]);

/** The set without an item; `null` if it does not have the item. */
function without(set: ReadonlySet<string>, item: string): ReadonlySet<string> | null {
  if (!set.has(item)) return null;
  const rest = new Set(set);
  rest.delete(item);
  return rest;
}
