#!/usr/bin/env python3
"""Rows of HDF5 and Zarr per CPU-second: `leat epoch` beside h5py and zarr-python, in one thread and in two workers of PyTorch's
DataLoader, from the page cache; and what it takes to find the chunks of an array of many.

    benchmarks/peers/chunked_arrays.py [--leat build/release/leat] [--rounds 5] [--directory DIR] [--only WORDS]

`run --jobs arrays` does this. Where h5py, zarr or numpy is missing it goes on in a virtual environment that has them and torch (~/.cache/leat-peers,
or --venv); without torch the workers are left out. Sides take turns; a line is the median of the
rounds' ratios, least and most in brackets. CPU-seconds are of the whole leat process, its start included; of Python's loop alone; of
the DataLoader's process and its workers, from the first batch on.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # Nothing of this is to lie about in the repository.
import environments

try:
    import h5py
    import numpy as np
    import zarr
except ImportError:
    words = argparse.ArgumentParser(add_help=False)
    words.add_argument("--venv", type=pathlib.Path, default=environments.usual_place)
    environments.start_again(words.parse_known_args()[0].venv, ("h5py", "numpy", "torch", "zarr"), "import h5py, numpy, torch, zarr")

rows, shape, batch, chunks = 4000, (64, 64, 3), 64, 1_000_000
volumes, volume, volume_chunk, crop, crop_epochs = 2, (512, 512, 512), (64, 64, 64), (128, 128, 128), 40

# What is read: file, order of leat, how Python reads it, epochs; the last is read in an exact order by a DataLoader's workers.
jobs = [
    ("gzip and shuffle, 1 row a chunk, exact", "one.h5", "shuffled", ("rows", "workers"), 6),
    ("gzip, 16 rows a chunk, exact", "sixteen.h5", "shuffled", ("rows",), 1),
    ("gzip, 16 rows a chunk, 64 chunks at a time", "sixteen.h5", "shuffled_blocks:64", ("chunks", "workers"), 6),
    ("contiguous, rows of 12 KiB, exact", "plain.h5", "shuffled", ("rows", "workers"), 20),
    ("contiguous, rows of 64 KiB, exact", "large.h5", "shuffled", ("rows", "workers"), 20),
    ("Zarr v3, zstd, 1 row a chunk, shards of 1,000, exact", "shards.zarr", "shuffled", ("rows", "workers"), 2),
]
python_epochs_max = {"workers": 2}


def make(directory):
    random = np.random.default_rng(1)
    x = (random.integers(0, 16, (rows, *shape)) * random.integers(1, 3, (rows, 1, 1, 1))).astype("u1")
    labels = np.arange(rows) % 10
    for name, how in {
        "one.h5": {"chunks": (1, *shape), "compression": "gzip", "shuffle": True},
        "sixteen.h5": {"chunks": (16, *shape), "compression": "gzip"},
        "plain.h5": {},
    }.items():
        with h5py.File(directory / name, "w", libver="latest") as f:
            f.create_dataset("images", data=x, **how)
            f.create_dataset("labels", data=labels)
    with h5py.File(directory / "large.h5", "w", libver="latest") as f:
        f.create_dataset("images", data=random.integers(0, 255, (1000, 4, *shape[:2], 4), "u1"))
        f.create_dataset("labels", data=np.arange(1000) % 10)
    with h5py.File(directory / "many.h5", "w", libver="latest") as f:
        f.create_dataset("x", data=np.arange(chunks).reshape(-1, 1), chunks=(1, 1), compression="gzip", compression_opts=1)
    group = zarr.open_group(directory / "shards.zarr", mode="w")
    made = group.create_array("images", shape=x.shape, dtype="u1", chunks=(1, *shape), shards=(1000, *shape))
    made[:] = x
    group.create_array("labels", data=labels)


def opened(path):
    return (zarr.open_group(path, mode="r") if path.suffix == ".zarr" else h5py.File(path))["images"]


def with_python(path, how, epochs):
    if how == "workers":
        return with_workers(path, epochs)
    images = opened(path)
    count = images.shape[0]
    random = np.random.default_rng(0)
    out = np.empty((batch, *images.shape[1:]), "u1")
    began = time.process_time()
    for _ in range(epochs):
        if how == "rows":
            order = random.permutation(count)
            for first in range(0, count, batch):
                for k, i in enumerate(order[first : first + batch]):
                    out[k] = images[i]
        else:
            blocks = random.permutation(count // 16)
            for first in range(0, len(blocks), 64):
                pool = np.concatenate([images[16 * b : 16 * b + 16] for b in blocks[first : first + 64]])
                order = random.permutation(len(pool))
                for k in range(0, len(pool), batch):
                    out[: len(order[k : k + batch])] = pool[order[k : k + batch]]
    return count * epochs / (time.process_time() - began)


# As it is usually written: each worker opens the file for itself.
class rows_of_file:
    def __init__(self, path):
        self.path, self.images = path, None
        self.count = opened(path).shape[0]

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self.images is None:
            self.images = opened(self.path)
        return self.images[i]


# In a process of its own, whose children's time is that of the workers.
def with_workers(path, epochs):
    done = subprocess.run([sys.executable, __file__, "--worker", path, str(epochs)], check=True, capture_output=True)
    return float(done.stdout)


def work(path, epochs):
    import torch
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    samples = rows_of_file(path)

    def cpu_s():
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(each.ru_utime + each.ru_stime for each in used)

    began = cpu_s()
    loader = DataLoader(samples, batch_size=batch, shuffle=True, num_workers=2)
    for _ in range(epochs):
        for _ in loader:
            pass
    print(len(samples) * epochs / (cpu_s() - began))


def leat_said(leat, path, *how):
    command = [leat, "epoch", path, *map(str, how), "--digest", "off", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def with_leat(leat, path, order, epochs):
    said = leat_said(leat, path, "--batch-size", batch, "--epochs", epochs, "--order", order)
    return said["samples"] / said["cpu_s"]


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
        f"{what} a CPU-second: {ours:.4g} beside {theirs:.4g}",
        flush=True,
    )


# CPU-seconds until the first samples are there, of which the index is most, beside a look at each chunk with an empty function.
def index_with_leat(leat, path):
    return 1 / leat_said(leat, path, "--limit", 64, "--no-shuffle")["cpu_s"]


def index_with_python(path):
    with h5py.File(path) as f:
        began = time.process_time()
        f["x"].id.chunk_iter(lambda chunk: None)
        return 1 / (time.process_time() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leat", default="build/release/leat")
    parser.add_argument("--venv", type=pathlib.Path, default=environments.usual_place, help="the virtual environment (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", default="", help="for what is read; files that are there already are read as they are")
    parser.add_argument("--only", default="", help="jobs with these words in their names")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        return work(pathlib.Path(given.worker[0]), int(given.worker[1]))
    if not os.access(given.leat, os.X_OK):
        sys.exit(f"{given.leat}: no such program; `scripts/demo` builds it")
    has_torch = importlib.util.find_spec("torch") is not None
    if not has_torch:
        print("torch is not there: the DataLoader's workers are left out")
    with tempfile.TemporaryDirectory() as made:
        directory = pathlib.Path(given.directory or made)
        directory.mkdir(parents=True, exist_ok=True)
        if not (directory / "volumes.zarr").exists():
            make(directory)
            make_volumes(directory)
        compared = []  # name, what is counted, ours, theirs
        for name, file, order, ways, epochs in jobs:
            for how in ways:
                if how == "workers" and not has_torch:
                    continue
                theirs = {"rows": "one thread", "chunks": "one thread, whole chunks", "workers": "DataLoader(2), exact"}[how]
                compared.append(
                    (
                        f"{name}, beside {theirs}",
                        "rows",
                        lambda file=file, order=order, epochs=epochs: with_leat(given.leat, directory / file, order, epochs),
                        lambda file=file, how=how, epochs=epochs: with_python(
                            directory / file, how, min(epochs, python_epochs_max.get(how, epochs))
                        ),
                    )
                )
        compared.append(
            (
                "crop 128^3 of 512^3, chunks 64^3, Zarr v3, zstd, beside one thread",
                "crops",
                lambda: crops_with_leat(given.leat, directory / "volumes.zarr"),
                lambda: crops_with_python(directory / "volumes.zarr"),
            )
        )
        compared.append(
            (
                f"index of {chunks:,} chunks, beside chunk_iter",
                "indexes",
                lambda: index_with_leat(given.leat, directory / "many.h5"),
                lambda: index_with_python(directory / "many.h5"),
            )
        )
        for name, what, ours, theirs in compared:
            if given.only in name:
                report(name, what, [(ours(), theirs()) for _ in range(given.rounds)])


if __name__ == "__main__":
    main()
