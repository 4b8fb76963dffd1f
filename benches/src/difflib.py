"""Times difflib over pairs of files: `difflib.py FOLDER` prints the CPU seconds of each, and writes FOLDER/difflib.diff.

Reading and splitting are not timed. Lines end at "\n" only; difflib itself says nothing of a last line without one.
"""

import difflib
import os
import sys
import time


def lines(path):
    with open(path, encoding="latin-1", newline="") as file:
        text = file.read()
    parts = text.split("\n")
    last = parts.pop()
    return [part + "\n" for part in parts] + ([last + "\n\\ No newline at end of file\n"] if last else [])


folder = sys.argv[1]
with open(os.path.join(folder, "difflib.diff"), "w", encoding="latin-1", newline="") as output:
    for name in sorted(os.listdir(os.path.join(folder, "old"))):
        old, new = (lines(os.path.join(folder, side, name)) for side in ("old", "new"))
        start = time.process_time()
        text = "".join(difflib.unified_diff(old, new, "old", "new", n=3))
        print(time.process_time() - start, flush=True)
        output.write(text)
