/** A map that drops its oldest entries above a limit. Entries that must stay are skipped. */
export class BoundedMap<Key, Value> {
  readonly #entries = new Map<Key, Value>();
  readonly #limit: number;
  readonly #mustStay: (value: Value) => boolean;
  readonly #onDrop: (key: Key, value: Value) => void;

  constructor(
    limit: number,
    mustStay: (value: Value) => boolean = () => false,
    onDrop: (key: Key, value: Value) => void = () => undefined,
  ) {
    this.#limit = limit;
    this.#mustStay = mustStay;
    this.#onDrop = onDrop;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key);
  }

  has(key: Key): boolean {
    return this.#entries.has(key);
  }

  values(): IterableIterator<Value> {
    return this.#entries.values();
  }

  set(key: Key, value: Value): void {
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#limit) return;
    for (const [oldKey, oldValue] of this.#entries) {
      if (this.#entries.size <= this.#limit) break;
      if (oldKey === key || this.#mustStay(oldValue)) continue;
      this.#entries.delete(oldKey);
      this.#onDrop(oldKey, oldValue);
    }
  }

  delete(key: Key): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}
