"""What the adaptors of resume.py do alike. Each has three functions:

    write(folder, records)       what the loader reads, made of the array `records`
    batches(folder, size)        a loader and an iterator of its batches, shuffled; from the beginning
    save(loader, iterator) and resumed(folder, size, state)   a state as bytes, and as batches() from there on

The time is that from before the loader is made, and its state read, to its first batch in hand.
"""

import argparse
import json
import os
import pathlib
import time

import numpy as np


def main(text, write, batches, save, resumed, versions):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--write", type=pathlib.Path, help="make what the loader reads of this .npy, and end")
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--state", type=pathlib.Path)
    parser.add_argument("--after", type=int, help="write the state after so many batches; without it go on from the state")
    given = parser.parse_args()
    if given.write:
        write(given.folder, np.load(given.write, mmap_mode="r"))
        return
    began = time.monotonic()
    if given.state and given.after is None:
        loader, iterator = resumed(given.folder, given.batch_size, given.state.read_bytes())
    else:
        loader, iterator = batches(given.folder, given.batch_size)
    if given.after is not None:
        for _ in range(given.after):
            next(iterator)
        given.state.write_bytes(save(loader, iterator))
        began = time.monotonic()
    batch = next(iterator)
    seconds = time.monotonic() - began
    rows = np.stack([np.frombuffer(row, np.uint8) if isinstance(row, bytes) else np.asarray(row) for row in batch])
    ids = np.ascontiguousarray(rows[:, :8]).view("<u8")[:, 0]
    print(json.dumps({"seconds": seconds, "ids": ids.tolist(), "versions": versions}), flush=True)
    os._exit(0)  # Loaders without an end need not agree to stop.
