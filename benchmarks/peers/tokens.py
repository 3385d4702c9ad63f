#!/usr/bin/env python3
"""What does a batch of tokens cost? nanoGPT's get_batch beside leat: 12 windows of 1024, x and y as int64.

    tokens.py FILE [--leat build/release/leat] [--rounds 5] [--batches 5000]

FILE holds tokens of u16 without a header, as nanoGPT's prepare.py writes them. CPU-seconds per 1,000 batches, of the whole
process by getrusage: leat's with its start in it, get_batch's without that of Python. The page cache is warm; the rounds
alternate. get_batch is nanoGPT's own (train.py, MIT licence), for the CPU; without PyTorch the same with NumPy alone.
"""
import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

try:
    import torch
except ImportError:
    torch = None

BATCH, LENGTH = 12, 1024


def get_batch(path):
    # A new memmap for every batch, as nanoGPT has it: https://stackoverflow.com/questions/45132940
    data = np.memmap(path, dtype=np.uint16, mode="r")
    if torch is not None:
        ix = torch.randint(len(data) - LENGTH, (BATCH,))
        x = torch.stack([torch.from_numpy((data[i : i + LENGTH]).astype(np.int64)) for i in ix])
        y = torch.stack([torch.from_numpy((data[i + 1 : i + 1 + LENGTH]).astype(np.int64)) for i in ix])
    else:
        ix = np.random.randint(len(data) - LENGTH, size=BATCH)
        x = np.stack([(data[i : i + LENGTH]).astype(np.int64) for i in ix])
        y = np.stack([(data[i + 1 : i + 1 + LENGTH]).astype(np.int64) for i in ix])
    return x, y


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure_get_batch(path, batches):
    began, cpu = time.monotonic(), cpu_s()
    for _ in range(batches):
        get_batch(path)
    return (cpu_s() - cpu) * 1000 / batches, batches / (time.monotonic() - began)


def measure_leat(command, path, batches, windows):
    run = subprocess.run(
        [command, "epoch", path, "--tokens", str(LENGTH), "--batch-size", str(BATCH), "--windows", windows, "--digest",
         "off", "--limit", str(batches), "--json"] + (["--no-shuffle"] if windows == "tiled" else []),
        capture_output=True, text=True, check=True)
    result = json.loads(run.stdout)
    if result["batches"] < batches:
        sys.exit(f"{path} holds {result['batches']} batches; give a longer file, or --batches {result['batches']}")
    return result["cpu_s"] * 1000 / result["batches"], result["batches"] / result["seconds"]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file")
    options.add_argument("--leat", default="build/release/leat")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--batches", type=int, default=5000)
    given = options.parse_args()
    print(f"NumPy {np.__version__}, " + (f"PyTorch {torch.__version__}" if torch is not None else "no PyTorch"))
    if torch is not None:
        torch.set_num_threads(1)
    measures = {
        "get_batch": lambda: measure_get_batch(given.file, max(given.batches // 5, 1)),
        "leat, random": lambda: measure_leat(given.leat, given.file, given.batches, "random"),
        "leat, shifted": lambda: measure_leat(given.leat, given.file, given.batches, "shifted"),
        "leat, in order": lambda: measure_leat(given.leat, given.file, given.batches, "tiled"),
    }
    measure_get_batch(given.file, 100)  # Warm: the file, and Python's allocator.
    seen = {name: [] for name in measures}
    for _ in range(given.rounds):
        for name, measure in measures.items():
            seen[name].append(measure())
    base = statistics.median(cpu for cpu, _ in seen["get_batch"])
    print(f"{'':16}  CPU-s per 1,000 batches  (lowest..highest)   batches/s   get_batch / this")
    for name, runs in seen.items():
        cpu = sorted(each for each, _ in runs)
        rate = statistics.median(each for _, each in runs)
        middle = statistics.median(cpu)
        print(f"{name:16}  {middle:23.4f}  ({cpu[0]:.4f}..{cpu[-1]:.4f})  {rate:10,.0f}  {base / middle:17.1f}")


if __name__ == "__main__":
    main()
