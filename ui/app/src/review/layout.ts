/** Places of files and rows in the one list that the panel scrolls through. Pure. */

/** Item of the list: the header of a file (`row` is -1) or one of its rows. */
export interface ListItem {
  file: number;
  row: number;
}

export class ListLayout {
  /** Index of each file's header, and the total as the last entry. */
  private readonly starts: number[];

  constructor(rows: readonly number[]) {
    this.starts = [0];
    for (const count of rows) this.starts.push((this.starts.at(-1) ?? 0) + 1 + count);
  }

  get count(): number {
    return this.starts.at(-1) ?? 0;
  }

  start(file: number): number {
    return this.starts[file] ?? this.count;
  }

  indexOf({ file, row }: ListItem): number {
    return this.start(file) + 1 + row;
  }

  at(index: number): ListItem {
    let low = 0;
    let high = this.starts.length - 2;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.start(middle) <= index) low = middle;
      else high = middle - 1;
    }
    return { file: low, row: index - this.start(low) - 1 };
  }
}
