#!/usr/bin/env python3
"""How many tokens does a CPU-second pad, in leat and by pad_sequence in PyTorch's DataLoader?

    benchmarks/peers/padding.py [--rounds 5] [--benchmark build/release/benchmarks/pad_benchmark] [--venv DIR] [--directory DIR]

50,000 rows of 1 to 2,048 tokens (u16, one file in the page cache) in any order, 32 to a batch: i64 [32, L], their lengths and a mask, L the
longest of the batch rounded up to a multiple of 8. CPU time of the process and its workers, in turns; medians with the lowest and the highest.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # Nothing of this is to lie about in the repository.
here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
multiple = 8


def work(file, workers, epochs):
    """What a collate_fn of a trainer does, one epoch after another; prints as pad_benchmark does."""
    import resource

    import numpy
    import torch
    from torch.nn.utils.rnn import pad_sequence

    torch.set_num_threads(1)
    lengths = numpy.fromfile(f"{file}.lengths", dtype=numpy.int64)
    begins = numpy.concatenate([[0], numpy.cumsum(lengths)])
    tokens = numpy.memmap(file, dtype=numpy.uint16, mode="r")

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return len(lengths)

        def __getitem__(self, i):
            return torch.from_numpy(tokens[begins[i] : begins[i + 1]].astype(numpy.int64))

    def collate(rows):
        counts = torch.tensor([len(row) for row in rows])
        ids = pad_sequence(rows, batch_first=True)
        ids = torch.nn.functional.pad(ids, (0, -ids.shape[1] % multiple))
        return ids, counts, torch.arange(ids.shape[1]) < counts[:, None]

    def cpu_s():
        return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

    loader = torch.utils.data.DataLoader(Rows(), batch_size=32, shuffle=True, num_workers=workers, collate_fn=collate)
    began_cpu_s, began = cpu_s(), time.monotonic()
    for _ in range(epochs):
        total = 0
        for ids, _, _ in loader:
            total += int(ids[:, 0].sum())
    del loader  # Its workers have ended with their epochs, and are counted.
    print(json.dumps({"tokens": int(lengths.sum()) * epochs, "cpu_s": cpu_s() - began_cpu_s,
                      "seconds": time.monotonic() - began, "sum": total}))


def last_json(command):
    done = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--benchmark", type=pathlib.Path, default=root / "build" / "release" / "benchmarks" / "pad_benchmark")
    parser.add_argument("--venv", type=pathlib.Path, help="a virtual environment with torch and numpy (~/.cache/leat-peers)")
    parser.add_argument("--directory", default="", help="for the file of tokens, which is read as it is where it is there")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(given)
    if given.worker:
        return work(given.worker[0], int(given.worker[1]), 1)
    if not given.benchmark.exists():
        sys.exit(f"{given.benchmark}: no such program; `cmake --build build/release` builds it")
    import environments

    python = (given.venv or environments.usual_place) / "bin" / "python"
    if not python.exists():
        sys.exit(f"{python}: not there; `python3 -m venv DIR && DIR/bin/pip install torch numpy`, and --venv DIR")
    with tempfile.TemporaryDirectory() as made:
        file = pathlib.Path(given.directory or made) / "tokens.u16"
        last_json([given.benchmark, "--file", file, "--epochs", "1"])
        rates = {}
        for _ in range(given.rounds):
            seen = {"leat": last_json([given.benchmark, "--file", file])}
            for workers in (0, 2):
                seen[f"pad_sequence, DataLoader({workers})"] = last_json([python, __file__, "--worker", file, str(workers)])
            if len({each["sum"] for each in seen.values()}) != 1:
                sys.exit(f"they have read other rows: {seen}")
            for name, each in seen.items():
                rates.setdefault(name, []).append(each["tokens"] / each["cpu_s"] / 1e6)
    for name, each in rates.items():
        ratios = [ours / theirs for ours, theirs in zip(rates["leat"], each)]
        print(f"{name:32} {statistics.median(each):8.1f} million tokens a CPU-second ({min(each):.1f} to {max(each):.1f}); "
              f"leat {statistics.median(ratios):.1f} times ({min(ratios):.1f} to {max(ratios):.1f})")


if __name__ == "__main__":
    main()
