#!/usr/bin/env python3
"""Is what `leat tune` finds as fast as the best of a grid, on this machine's own lines?

    benchmarks/tune_cases.py [--leat build/release/leat] [--seconds 1.5] [--rounds 5] [--cases WORDS] [--out FILE]

Twelve cases: photographs, a photo pack, small records, rows of .npy, tokens and shards of tar, each as fast as they come and for a trainer
whose step takes 1.25 times what the defaults deliver in. Every setting of a grid (decode threads, I/O threads, reads in flight) is run once;
the best three and the tuner's are then run in turns, and of each the median counts: the best of many single runs is one that was lucky.
Digests are off, as they are for the tuner. A rate is that of whole epochs. The page cache holds all files. It wants a quiet machine, and
takes 12 minutes on two cores.
"""

import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "benchmarks" / "peers"))
import report
from environments import say


GRID = [["--threads", threads, "--io-threads", io, "--queue-depth", depth]
        for threads, io, depth in itertools.product(range(1, os.cpu_count() + 1), (1, 2), (4, 32))]
BATCH = 64


def make_sources(leat, folder):
    """What each case loads, by name: arguments of `leat epoch`."""

    def run(*command):
        subprocess.run([leat, *map(str, command)], check=True, stdout=subprocess.DEVNULL)

    photos = folder / "photos"
    run("make-photos", photos, "--count", "256")
    run("pack", photos, folder / "shard-{0..3}.tar")
    run("pack", photos, folder / "pack-{0..3}.tar", "--photos", "fast")
    values = os.urandom(4096 * 16384)
    (folder / "records.bin").write_bytes(values)
    (folder / "records.json").write_text(json.dumps({"fields": [{"name": "x", "dtype": "u8", "shape": [4096]}]}))
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4096, 4096), }".ljust(117) + "\n"
    (folder / "rows.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + values)
    (folder / "tokens.bin").write_bytes(values)
    return {
        "photographs": [photos],
        "shards": [folder / "shard-{0..3}.tar"],
        "photo packs": [folder / "pack-{0..3}.tar"],
        "records of 4 KiB": [folder / "records.bin"],
        "rows of 16 KiB": [folder / "rows.npy"],
        "tokens": [folder / "tokens.bin", "--tokens", "1024"],
    }


class cases:
    def __init__(self, leat, seconds):
        self.leat, self.seconds = leat, seconds

    def json(self, command, arguments):
        made = subprocess.run([self.leat, command, *map(str, arguments), "--json"], check=True, capture_output=True, text=True)
        return json.loads(made.stdout)

    def rate(self, arguments, epochs):
        """Samples a second, without the opening."""
        return self.json("epoch", [*arguments, "--digest", "off", "--epochs", epochs])["samples_per_s"]

    def epochs(self, arguments):
        """How many epochs take the seconds, by some of them: the first one has the start in it."""
        seconds = self.json("epoch", [*arguments, "--digest", "off", "--epochs", 4])["seconds"] / 4
        return max(1, round(self.seconds / max(seconds, 1e-4)))

    def free(self, source):
        """Samples a second of the defaults, for a trainer that takes no time."""
        asked = [*source, "--batch-size", BATCH]
        return self.rate(asked, self.epochs(asked))

    def measure(self, source, step, rounds):
        """The tuner's rate over that of the grid's best; the tuner's flags and the best's, with the rates."""
        asked = [*source, "--batch-size", BATCH, "--step-ms", step]
        flags = self.json("tune", [*asked, "--minutes", "0.5"])["flags"].split()
        count = self.epochs(asked)
        best = sorted(GRID, key=lambda setting: -self.rate([*asked, *setting], count))[:3]
        settings = [*best, flags]
        rates = [[] for _ in settings]
        for _ in range(rounds):
            for of, setting in zip(rates, settings):
                of.append(self.rate([*asked, *setting], count))
        medians = [statistics.median(of) for of in rates]
        at = max(range(len(best)), key=lambda at: medians[at])
        shown = [f"`{' '.join(map(str, setting))}`, {report.number(medians[i])}/s" for i, setting in ((-1, flags), (at, best[at]))]
        return medians[-1] / medians[at], *shown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leat", type=pathlib.Path, default=root / "build" / "release" / "leat")
    parser.add_argument("--seconds", type=float, default=1.5, help="of one run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", default="", help="only those whose name has these words")
    parser.add_argument("--out", type=pathlib.Path, help="where the page goes (printed)")
    given = parser.parse_args()
    run = cases(given.leat, given.seconds)
    lines = ["| case | of the grid's best | the tuner's flags | the best's |", "| --- | --- | --- | --- |"]
    good = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, source in make_sources(given.leat, pathlib.Path(folder)).items():
            for case, is_slow in {name: False, f"{name}, a trainer": True}.items():
                if given.cases not in case:
                    continue
                step = max(1, round(1.25 * 1000 * BATCH / run.free(source))) if is_slow else 0
                ratio, flags, best = run.measure(source, step, given.rounds)
                good += ratio >= 0.95
                lines.append(f"| {case}{f' of {step} ms' if is_slow else ''} | {ratio:.2f} | {flags} | {best} |")
                say(lines[-1])
    lines.append(f"\n{good} of {len(lines) - 2} reach 0.95.\n")
    report.give("\n".join(lines), given.out)


if __name__ == "__main__":
    main()
