#!/usr/bin/env python3
"""Rows of HDF5 and Zarr per CPU-second: `leat epoch` beside h5py and zarr-python in one thread, from the page cache.

    python3 benchmarks/chunked_arrays.py [--leat build/release/leat] [--rounds 5] [--directory DIR]

Needs h5py, zarr and numpy (pip). Sides take turns; a line is the median of the rounds' ratios, least and most in brackets. CPU-seconds
are of the whole leat process, its start included, and of Python's loop alone.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np
import zarr

rows, shape, batch = 4000, (64, 64, 3), 64

# What is read: file, order of leat, how Python reads it, epochs.
jobs = [
    ("gzip, 1 row a chunk, exact", "one.h5", "shuffled", "rows", 6),
    ("gzip, 16 rows a chunk, exact", "sixteen.h5", "shuffled", "rows", 1),
    ("gzip, 16 rows a chunk, 64 chunks at a time", "sixteen.h5", "shuffled_blocks:64", "chunks", 6),
    ("contiguous, exact", "plain.h5", "shuffled", "rows", 20),
    ("Zarr v3, zstd, 1 row a chunk, shards of 1,000, exact", "shards.zarr", "shuffled", "rows", 2),
]


def make(directory):
    random = np.random.default_rng(1)
    x = (random.integers(0, 16, (rows, *shape)) * random.integers(1, 3, (rows, 1, 1, 1))).astype("u1")
    labels = np.arange(rows) % 10
    for name, how in {
        "one.h5": {"chunks": (1, *shape), "compression": "gzip"},
        "sixteen.h5": {"chunks": (16, *shape), "compression": "gzip"},
        "plain.h5": {},
    }.items():
        with h5py.File(directory / name, "w", libver="latest") as f:
            f.create_dataset("images", data=x, **how)
            f.create_dataset("labels", data=labels)
    group = zarr.open_group(directory / "shards.zarr", mode="w")
    made = group.create_array("images", shape=x.shape, dtype="u1", chunks=(1, *shape), shards=(1000, *shape))
    made[:] = x
    group.create_array("labels", data=labels)


def with_python(path, how, epochs):
    images = (zarr.open_group(path) if path.suffix == ".zarr" else h5py.File(path))["images"]
    random = np.random.default_rng(0)
    out = np.empty((batch, *shape), "u1")
    began = time.process_time()
    for _ in range(epochs):
        if how == "rows":
            order = random.permutation(rows)
            for first in range(0, rows, batch):
                for k, i in enumerate(order[first : first + batch]):
                    out[k] = images[i]
        else:
            blocks = random.permutation(rows // 16)
            for first in range(0, len(blocks), 64):
                pool = np.concatenate([images[16 * b : 16 * b + 16] for b in blocks[first : first + 64]])
                order = random.permutation(len(pool))
                for k in range(0, len(pool), batch):
                    out[: len(order[k : k + batch])] = pool[order[k : k + batch]]
    return rows * epochs / (time.process_time() - began)


def with_leat(leat, path, order, epochs):
    command = [leat, "epoch", path, "--batch-size", str(batch), "--epochs", str(epochs), "--order", order]
    said = subprocess.run([*command, "--digest", "off", "--json"], check=True, capture_output=True).stdout
    return rows * epochs / json.loads(said)["cpu_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leat", default="build/release/leat")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", default="")
    given = parser.parse_args()
    if not os.access(given.leat, os.X_OK):
        sys.exit(f"{given.leat}: no such program; `scripts/demo` builds it")
    with tempfile.TemporaryDirectory(dir=given.directory or None) as made:
        directory = pathlib.Path(made)
        make(directory)
        for name, file, order, how, epochs in jobs:
            sides = [
                (with_leat(given.leat, directory / file, order, epochs), with_python(directory / file, how, epochs))
                for _ in range(given.rounds)
            ]
            ratios = sorted(ours / theirs for ours, theirs in sides)
            ours, theirs = (statistics.median(side) for side in zip(*sides))
            print(
                f"{name}: {statistics.median(ratios):.2f} ({ratios[0]:.2f}..{ratios[-1]:.2f}), "
                f"rows a CPU-second: {ours:.0f} beside {theirs:.0f}"
            )


if __name__ == "__main__":
    main()
