import { describe, expect, it } from "vitest";

import { ListLayout } from "../../src/review/layout.js";

describe("list of files and rows", () => {
  it("index_and_place_are_inverse", () => {
    const layout = new ListLayout([3, 0, 2]);
    expect(layout.count).toBe(8);
    const places = Array.from({ length: layout.count }, (_, index) => layout.at(index));
    expect(places.map(({ file, row }) => `${file}:${row}`)).toEqual([
      "0:-1",
      "0:0",
      "0:1",
      "0:2",
      "1:-1",
      "2:-1",
      "2:0",
      "2:1",
    ]);
    expect(places.map((place) => layout.indexOf(place))).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it("empty_list_has_no_items", () => {
    expect(new ListLayout([]).count).toBe(0);
  });
});
