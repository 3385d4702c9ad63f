#!/usr/bin/env python3
"""What share of the drive's own rate does a whole epoch of raw samples get, cold, and for how much CPU?

The drive's own rate is `leat bench read --pattern extents`: the reads that an epoch makes, of records and of windows of tokens.
Each is run in turn with `leat epoch`, all with O_DIRECT, and an epoch's figures are those of long runs less those of
short ones: starting and faulting in memory is in both. Makes its files once, in --folder. A round takes half a minute: both
sides read for about as long, since a rented disk is faster for some seconds than for many.

    benchmarks/cold_records.py --folder /data/scratch [--leat build/release/leat] [--rounds 5] [--gib 2] [--json]
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys

RECORD_BYTES = 1 << 20
WINDOW_TOKENS = 1024


def make(path, size):
    """Random bytes, unless that very file is there."""
    if path.exists() and path.stat().st_size == size:
        return
    free = os.statvfs(path.parent)
    if free.f_bavail * free.f_frsize < size + (1 << 30):
        sys.exit(f"cold_records: {path.parent} has too little space for {size >> 20} MiB; give another --folder, or less --gib")
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file:
        for _ in range(size >> 24):
            file.write(os.urandom(1 << 24))
        os.fsync(file.fileno())
    partial.rename(path)


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command):
    """What a command printed as JSON, and its CPU-seconds."""
    before = cpu_s()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"cold_records: {' '.join(map(str, command))} failed: {done.stderr.strip()}")
    return json.loads(done.stdout), cpu_s() - before


def epoch(leat, options, short, long):
    """Bytes read, samples, seconds and CPU-seconds of the long run more than of the short one."""
    figures = []
    for length in (short, long):
        told, cpu = run([leat, "epoch", *options, *length, "--direct", "on", "--digest", "off", "--json"])
        figures.append((told["bytes_read"], told["samples"], told["seconds"], cpu))
    return [b - a for a, b in zip(*figures)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leat", default="build/release/leat", type=pathlib.Path)
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--gib", default=2, type=int, help="of records, and of tokens")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    records, tokens = given.folder / "records.bin", given.folder / "tokens.bin"
    make(records, given.gib << 30)
    make(tokens, given.gib << 30)
    records.with_suffix(".json").write_text(
        json.dumps({"fields": [{"name": "x", "dtype": "u8", "shape": [RECORD_BYTES]}]}))
    rows = []
    for _ in range(given.rounds):
        drive, _ = run([given.leat, "bench", "read", records, "--pattern", "extents", "--seconds", "11", "--direct", "on",
                        "--json"])
        read, _, seconds, cpu = epoch(given.leat, [records, "--batch-size", "16"], ["--epochs", "1"], ["--epochs", "12"])
        own = drive["rows"][0]
        rate = read / seconds / (1 << 30)
        row = {"records_of_drive": rate / own["gib_per_s"], "records_gib_per_s": rate,
               "records_cpu_s_per_gib": cpu / read * (1 << 30), "drive_cpu_s_per_gib": own["cpu_s_per_gib"]}
        windows = [tokens, "--tokens", WINDOW_TOKENS, "--windows", "random"]
        drive, _ = run([given.leat, "bench", "read", *windows, "--pattern", "extents", "--seconds", "3", "--direct", "on",
                        "--json"])
        _, samples, seconds, cpu = epoch(given.leat, [*windows, "--batch-size", "12"], ["--limit", "1000"], ["--limit", "16000"])
        row |= {"windows_of_drive": samples / seconds / drive["rows"][0]["samples_per_s"],
                "windows_per_s": samples / seconds, "window_cpu_us": cpu / samples * 1e6}
        rows.append(row)
    medians = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    if given.json:
        print(json.dumps({"medians": medians, "rounds": rows}, indent=2))
        return
    for name, median in medians.items():
        values = [row[name] for row in rows]
        print(f"{name:24} {median:10.4g}  ({min(values):.4g}..{max(values):.4g})")


if __name__ == "__main__":
    main()
