#!/usr/bin/env python3
"""How many emulated accelerators does one core keep busy, with leat and with PyTorch's DataLoader?

    storage.py FOLDER [--leat build/release/benchmarks/storage_benchmark] [--workloads unet3d,resnet50,cosmoflow]
               [--accelerator h100] [--cache warm] [--rounds 3] [--seconds 4] [--workers 0,1,2] [--most 16]

The shapes of MLPerf Storage, as storage_benchmark.cpp names them; FOLDER holds the files that `storage_benchmark FOLDER --make`
made, and both read the same ones. For each workload leat and PyTorch (with each number of workers) are given 1, 2, 4 ...
accelerators as long as the median utilisation of the rounds is above the rule's, and then what lies between. A round runs all
that are still in the race, one after another.

PyTorch: a process for each accelerator, as MLPerf Storage has a rank, each with a DataLoader of so many workers; all of
them on one core. Its readers: np.load() of the .npz, as MLPerf Storage's own reader, of which a row of 2 MiB is kept;
preadv() of a record into an array that torch.from_numpy() takes without a copy; batches by the default collate. Cold is
the page cache emptied of the files, and then at most one epoch; leat reads by O_DIRECT.

NumPy and PyTorch are taken from where this is started, or from the environment that `run` makes (~/.cache/leat-peers), where
they are installed if need be.

Utilisation is steps x compute time / time, from the end of the first step on, the mean over the accelerators; CPU that of
all processes. A result is no MLPerf result.
"""
import argparse
import glob
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # Nothing of this is to lie about in the repository.
import environments

if {"-h", "--help"} & set(sys.argv):  # Nothing need be installed for it.
    print(__doc__)
    sys.exit()
try:
    import numpy as np
    import torch
except ModuleNotFoundError:
    environments.start_again(environments.usual_place, ("torch", "numpy"), "import numpy, torch")

KEPT = 2_097_152  # of an unet3d sample: record_length_bytes_resize


class Files(torch.utils.data.Dataset):
    """The samples of files that have `per_file` each."""

    def __init__(self, paths, per_file, sample_bytes):
        self.paths, self.per_file, self.sample_bytes, self.open_files = paths, per_file, sample_bytes, {}

    def __len__(self):
        return len(self.paths) * self.per_file

    def __getitem__(self, index):
        path = self.paths[index // self.per_file]
        if path.endswith(".npz"):
            with np.load(path) as archive:
                return torch.from_numpy(archive["x"][0, :KEPT])
        row = np.empty(self.sample_bytes, dtype=np.uint8)
        if self.per_file == 1:
            with open(path, "rb", buffering=0) as file:
                got = file.readinto(row)
        else:
            if path not in self.open_files:
                self.open_files[path] = os.open(path, os.O_RDONLY)
            got = os.preadv(self.open_files[path], [row], index % self.per_file * self.sample_bytes)
        assert got == self.sample_bytes, f"{path} is too short"
        return torch.from_numpy(row)


# As storage_benchmark.cpp has them.
SHAPES = {
    "unet3d": dict(sample_bytes=146_600_628, per_file=1, batch=7, step={"a100": 0.636, "h100": 0.323}, least=0.90),
    "resnet50": dict(sample_bytes=114_660, per_file=1251, batch=400, step={"a100": 0.435, "h100": 0.224}, least=0.90),
    "cosmoflow": dict(sample_bytes=2_828_486, per_file=1, batch=1, step={"a100": 0.00551, "h100": 0.00350}, least=0.70),
}


def paths_of(folder, workload):
    found = sorted(glob.glob(os.path.join(folder, workload, "*.npz")) + glob.glob(os.path.join(folder, workload, "*.bin")))
    if not found:
        sys.exit(f"{folder}/{workload} has no files; storage_benchmark {folder} --make")
    return found


def drop(paths):
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def cpu_s(pid):
    """Of a process and of those it started that still live."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            words = stat.read().rsplit(")", 1)[1].split()
        ticks = int(words[11]) + int(words[12])
        total = ticks / os.sysconf("SC_CLK_TCK")
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as children:
                total += sum(cpu_s(int(child)) for child in children.read().split())
        return total
    except FileNotFoundError:
        return 0.0


def accelerator(paths, given, shape, rank, count, workers, begin, results):
    torch.set_num_threads(1)
    files = Files(paths, shape["per_file"], shape["sample_bytes"])
    first, last = len(files) * rank // count, len(files) * (rank + 1) // count
    order = torch.utils.data.SubsetRandomSampler(range(first, last), torch.Generator().manual_seed(7))
    loader = torch.utils.data.DataLoader(
        files, batch_size=shape["batch"], sampler=order, drop_last=True, num_workers=workers,
        persistent_workers=workers > 0)
    if len(loader) == 0:
        sys.exit(f"a share of {last - first} samples makes no batch")
    step_s = shape["step"][given.accelerator]

    def batches():
        while True:
            yield from loader
            if given.cache == "cold":
                return

    steps = 0
    waiting = batches()
    next(waiting)
    time.sleep(step_s)
    begin.wait()
    began = time.monotonic()
    while time.monotonic() - began < given.seconds:
        batch = next(waiting, None)
        if batch is None:
            break
        assert batch.shape[0] == shape["batch"]
        time.sleep(step_s)
        steps += 1
    results.put((steps, time.monotonic() - began))
    begin.wait()  # The workers live until their CPU was looked at.


def run_torch(folder, workload, given, count, workers):
    shape, paths = SHAPES[workload], paths_of(folder, workload)
    if given.cache == "cold":
        drop(paths)
    begin, results = multiprocessing.Barrier(count + 1), multiprocessing.Queue()
    ranks = [
        multiprocessing.Process(
            target=accelerator, args=(paths, given, shape, rank, count, workers, begin, results))
        for rank in range(count)
    ]
    for rank in ranks:
        rank.start()
    begin.wait()
    before = sum(cpu_s(rank.pid) for rank in ranks)
    got = [results.get(timeout=600) for _ in ranks]
    cpu = sum(cpu_s(rank.pid) for rank in ranks) - before
    begin.wait()
    for rank in ranks:
        rank.join()
    steps = sum(each for each, _ in got)
    wall = max(took for _, took in got)
    return {
        "utilisation": statistics.mean(each * shape["step"][given.accelerator] / took for each, took in got),
        "cpu_s_per_step": cpu / max(steps, 1),
        "bytes_per_s": steps * shape["batch"] * shape["sample_bytes"] / wall,
    }


def run_leat(folder, workload, given, count):
    done = subprocess.run(
        [given.leat, folder, "--workload", workload, "--accelerator", given.accelerator, "--accelerators", str(count),
         "--cache", given.cache, "--seconds", str(given.seconds), "--core", str(given.core), "--json"],
        stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def race(folder, workload, given):
    """For each contestant what it did with each number of accelerators, and how many it holds."""
    shape = SHAPES[workload]
    samples = len(paths_of(folder, workload)) * shape["per_file"]
    most = min(given.most, samples // shape["batch"])
    contestants = {"leat": lambda count: run_leat(folder, workload, given, count)}
    for workers in given.workers:
        contestants[f"PyTorch, {workers} worker{'' if workers == 1 else 's'}"] = (
            lambda count, workers=workers: run_torch(folder, workload, given, count, workers))
    held = {name: 0 for name in contestants}
    failed = {name: most + 1 for name in contestants}
    seen = {name: {} for name in contestants}
    while True:
        # The next number that each is asked for: twice what it holds, and then the middle.
        asked = {}
        for name in contestants:
            if failed[name] - held[name] > 1:
                middle = (held[name] + failed[name]) // 2
                asked[name] = min(max(2 * held[name], 1), middle if failed[name] <= most else most)
        if not asked:
            return held, seen
        runs = {name: [] for name in asked}
        for _ in range(given.rounds):
            for name, count in asked.items():
                runs[name].append(contestants[name](count))
        for name, count in asked.items():
            seen[name][count] = runs[name]
            median = statistics.median(run["utilisation"] for run in runs[name])
            if median >= shape["least"]:
                held[name] = count
            else:
                failed[name] = count
            print(f"  {workload}: {name}, {count}: {median:.3f}", file=sys.stderr)


def spread(runs, key, scale=1.0, digits=3):
    values = sorted(run[key] * scale for run in runs)
    return f"{statistics.median(values):.{digits}f} ({values[0]:.{digits}f}..{values[-1]:.{digits}f})"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder")
    options.add_argument("--leat", default="build/release/benchmarks/storage_benchmark")
    options.add_argument("--workloads", type=lambda text: text.split(","), default=list(SHAPES))
    options.add_argument("--accelerator", choices=["a100", "h100"], default="h100")
    options.add_argument("--cache", choices=["warm", "cold"], default="warm")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=float, default=4)
    options.add_argument("--workers", type=lambda text: [int(each) for each in text.split(",")], default=[0, 1, 2])
    options.add_argument("--most", type=int, default=16)
    options.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    given = options.parse_args()
    os.sched_setaffinity(0, {given.core})
    multiprocessing.set_start_method("fork")
    torch.set_num_threads(1)

    print(f"PyTorch {torch.__version__}, NumPy {np.__version__}; one core; {given.accelerator.upper()}, {given.cache}; "
          f"{given.rounds} rounds of {given.seconds:g} s, median (lowest..highest)\n")
    print("| workload, rule | | held | utilisation there | with one more | CPU ms per step, with 1 | GB/s, most |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for workload in given.workloads:
        shape = SHAPES[workload]
        if given.cache == "warm":
            for path in paths_of(given.folder, workload):
                with open(path, "rb", buffering=0) as file:
                    while file.read(1 << 22):
                        pass
        held, seen = race(given.folder, workload, given)
        for name, counts in seen.items():
            at = held[name]
            print(f"| {workload}, {shape['least']:.2f} | {name} | {at} | "
                  f"{spread(counts[at], 'utilisation') if at else ''} | "
                  f"{spread(counts[at + 1], 'utilisation') if at + 1 in counts else ''} | "
                  f"{spread(counts[1], 'cpu_s_per_step', 1e3, 2)} | "
                  f"{max(statistics.median(run['bytes_per_s'] for run in runs) for runs in counts.values()) * 1e-9:.2f} |",
                  flush=True)


if __name__ == "__main__":
    main()
