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
volumes, volume, volume_chunk, crop, crop_epochs = 2, (512, 512, 512), (64, 64, 64), (128, 128, 128), 40

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


def leat_said(leat, path, *how):
    command = [leat, "epoch", path, *map(str, how), "--digest", "off", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def with_leat(leat, path, order, epochs):
    said = leat_said(leat, path, "--batch-size", batch, "--epochs", epochs, "--order", order)
    return rows * epochs / said["cpu_s"]


def make_volumes(directory):
    random = np.random.default_rng(2)
    group = zarr.open_group(directory / "volumes.zarr", mode="w")
    made = group.create_array("image", shape=(volumes, *volume), dtype="i2", chunks=(1, *volume_chunk))
    for i in range(volumes):
        noise = random.integers(-20, 20, volume, dtype="i2")
        made[i] = noise + np.linspace(0, 800, volume[0], dtype="i2")[:, None, None]


def crops_with_python(path):
    image = zarr.open_group(path)["image"]
    random = np.random.default_rng(0)
    out = np.empty((2, *crop), "i2")
    began = time.process_time()
    for _ in range(crop_epochs):
        for k, i in enumerate(random.permutation(volumes)):
            first = [random.integers(0, whole - part + 1) for whole, part in zip(volume, crop)]
            out[k % 2] = image[(i, *(slice(a, a + n) for a, n in zip(first, crop)))]
    return volumes * crop_epochs / (time.process_time() - began)


def crops_with_leat(leat, path):
    how = ("--batch-size", 2, "--epochs", crop_epochs, "--array-crop", ",".join(map(str, crop)))
    return volumes * crop_epochs / leat_said(leat, path, *how)["cpu_s"]


def report(name, what, sides):
    ratios = sorted(ours / theirs for ours, theirs in sides)
    ours, theirs = (statistics.median(side) for side in zip(*sides))
    print(
        f"{name}: {statistics.median(ratios):.2f} ({ratios[0]:.2f}..{ratios[-1]:.2f}), "
        f"{what} a CPU-second: {ours:.4g} beside {theirs:.4g}"
    )


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
            report(name, "rows", sides)
        make_volumes(directory)
        path = directory / "volumes.zarr"
        report(
            "crop 128^3 of 512^3, chunks 64^3, Zarr v3, zstd",
            "crops",
            [(crops_with_leat(given.leat, path), crops_with_python(path)) for _ in range(given.rounds)],
        )


if __name__ == "__main__":
    main()
