#!/usr/bin/env python3
"""How long does a run that goes on at 90 % of an epoch take to its first batch, more than one that begins?

    benchmarks/peers/resume.py [--records 100000] [--batch-size 100] [--rounds 11] [--leat build/release/leat] [--out FILE]

leat beside torchdata's StatefulDataLoader, MosaicML Streaming and Grain: records of 1 KiB, shuffled, in the page cache. Each is run to
90 % once, and leaves a state. A round then starts each twice, in processes of their own: from the beginning, and from the state. What
counts is the difference of the times to the first batch. That it is the batch that the first run would have come to is looked at too.

The peers count from before their loader is made; leat from the start of its process, which is in both its times. The peers are installed
into a virtual environment (~/.cache/leat-peers), as those of `run`, which does this with `--jobs resume`.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import struct
import sys

sys.dont_write_bytecode = True  # Nothing of this is to lie about in the repository.
import environments
import processes
from environments import say

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent


def write_rows(path, count, size=1024):
    """A .npy of rows of bytes, each with its number in front."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({count}, {size}), }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for number in range(count):
            file.write(struct.pack("<Q", number) + bytes([number % 251]) * (size - 8))


class Peer:
    def __init__(self, name, adaptor, packages, check):
        self.name, self.adaptor, self.packages, self.check = name, adaptor, packages, check

    def prepare(self, run):
        self.folder = run.made / self.adaptor
        self.folder.mkdir()
        self.start(run, "--write", run.rows, reads=lambda text: {})
        return self.start(run, "--state", self.folder / "state", "--after", run.after)["ids"]

    def start(self, run, *more, reads=None):
        command = [run.python, here / "adaptors" / f"{self.adaptor}.py", self.folder, "--batch-size", run.batch_size, *more]
        return processes.run(command, reads or (lambda text: json.loads(text.strip().splitlines()[-1])))

    def first(self, run):
        return self.start(run)

    def resumed(self, run):
        return self.start(run, "--state", self.folder / "state")


class Leat:
    name = "leat"

    def prepare(self, run):
        self.state = run.made / "leat.state"
        self.start(run, "--state", self.state, "--stop-after", run.after)
        # The batch behind it, which another run of the same comes to.
        self.start(run, "--batches", run.made / "all", "--stop-after", run.after + 1)
        return json.loads((run.made / "all").read_text().splitlines()[-1])["ids"]

    def start(self, run, *more):
        command = [run.leat, "epoch", run.rows, "--batch-size", run.batch_size, "--seed", 7, "--digest", "off", "--json", *more]
        return processes.run(command, lambda text: {"seconds": json.loads(text)["first_batch_ms"] / 1e3, "versions": {}})

    def one(self, run, *more):
        lines = run.made / "one"
        lines.unlink(missing_ok=True)
        told = self.start(run, "--stop-after", 1, "--batches", lines, *more)
        return {**told, "ids": json.loads(lines.read_text().splitlines()[0])["ids"]}

    def first(self, run):
        state = run.made / "new.state"
        state.unlink(missing_ok=True)
        return self.one(run, "--state", state)

    def resumed(self, run):
        state = run.made / "again.state"
        shutil.copy(self.state, state)
        return self.one(run, "--state", state, "--resume", "always")


peers = [
    Peer("torchdata, StatefulDataLoader", "resume_torchdata", ("torch", "torchdata", "numpy"), "import torchdata.stateful_dataloader"),
    Peer("MosaicML Streaming", "resume_mosaicml", ("mosaicml-streaming", "numpy"), "import streaming"),
    Peer("Grain, MapDataset", "resume_grain", ("grain", "numpy"), "import grain"),
]


def ms(seconds):
    return f"{seconds * 1e3:.1f}"


def spread(values):
    return f"{ms(statistics.median(values))} ({ms(min(values))}..{ms(max(values))})"


def main(words):
    parser = argparse.ArgumentParser(prog="resume.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--leat", type=pathlib.Path, default=root / "build" / "release" / "leat")
    parser.add_argument("--venv", type=pathlib.Path, default=environments.usual_place)
    parser.add_argument("--made", type=pathlib.Path, default=environments.cache / "leat-peers-data" / "resume")
    parser.add_argument("--out", type=pathlib.Path, help="the table goes there too")
    run = parser.parse_args(words)
    if not run.leat.exists():
        sys.exit(f"resume.py: there is no {run.leat}: cmake --preset release && cmake --build --preset release --target leat")
    run.leat = run.leat.resolve()
    run.after = run.records * 9 // 10 // run.batch_size
    run.python = environments.make(run.venv)
    missing = environments.install(run.python, peers)
    shutil.rmtree(run.made, ignore_errors=True)
    run.made.mkdir(parents=True)
    run.rows = run.made / "rows.npy"
    write_rows(run.rows, run.records)
    entrants, expected = [], {}
    for each in [Leat(), *peers]:
        if each.name in missing:
            continue
        try:
            expected[each.name] = each.prepare(run)
            entrants.append(each)
        except processes.Failed as problem:
            missing[each.name] = str(problem)
            say(f"leaves out {each.name}: {problem}")
    times = {each.name: ([], []) for each in entrants}
    same, versions = {}, {}
    for number in range(run.rounds + 1):
        for each in entrants:
            first, resumed = each.first(run), each.resumed(run)
            same[each.name] = same.get(each.name, True) and resumed["ids"] == expected[each.name]
            versions[each.name] = " ".join(f"{name} {version}" for name, version in resumed["versions"].items())
            if number > 0:  # The first round warms the page cache, and what Python compiles.
                times[each.name][0].append(first["seconds"])
                times[each.name][1].append(resumed["seconds"])
    lines = [f"{run.records:,} records of 1 KiB, batches of {run.batch_size}, from batch {run.after}; ms, medians of {run.rounds} rounds (least..most)", "",
             "| loader | first batch | first batch, resumed | more | the batch that came next |", "| --- | --- | --- | --- | --- |"]
    for each in entrants:
        first, resumed = times[each.name]
        more = [b - a for a, b in zip(first, resumed)]
        lines.append(f"| {' '.join([each.name, versions[each.name]]).strip()} | {spread(first)} | {spread(resumed)} | {spread(more)} | "
                     f"{'yes' if same[each.name] else 'NO'} |")
    lines += [f"\n{name}: {why}" for name, why in missing.items()]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if run.out:
        run.out.write_text(text)
    shutil.rmtree(run.made, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
