#!/usr/bin/env python3
"""What share of the drive's own rate does an epoch of raw samples get, cold, and for how much CPU?

The drive's own rate is `leat bench read --pattern extents`: the reads that an epoch makes, of records and of windows of tokens,
at random and in order. It and `leat epoch` read in turn, with O_DIRECT; who comes first changes, since what a rented disk gives depends on what
it gave just before. Both are looked at from outside while they run, past their start: bytes read and CPU time of the process,
and how busy the drive was, as the kernel counts them (/proc/PID/io, /proc/PID/task/*/schedstat, /sys/dev/block/*/stat).
Makes its files once, in --folder. A round takes 45 s. A rented disk that has used up its credit of reads gives a tenth of
its rate to whoever comes next: where the ranges of both sides are that wide, wait some minutes and measure again.

    benchmarks/cold_records.py --folder /data/scratch [--leat build/release/leat] [--rounds 5] [--gib 2] [--seconds 5] [--json]
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

RECORD_BYTES = 1 << 20
WINDOW_TOKENS = 1024
GIB = 1 << 30
START_SECONDS = 2  # memory is faulted in and registered, the first batches are out


def make(path, size):
    """Random bytes, unless that very file is there."""
    if path.exists() and path.stat().st_size == size:
        return
    free = os.statvfs(path.parent)
    if free.f_bavail * free.f_frsize < size + GIB:
        sys.exit(f"cold_records: {path.parent} has too little space for {size >> 20} MiB; give another --folder, or less --gib")
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file:
        for _ in range(size >> 24):
            file.write(os.urandom(1 << 24))
        os.fsync(file.fileno())
    partial.rename(path)


def counters(process, drive):
    """Seconds, bytes read, CPU-seconds; seconds that the drive had any reads, and those of each read together."""
    folder = pathlib.Path(f"/proc/{process}")
    io = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
    cpu_ns = sum(int(task.read_text().split()[0]) for task in folder.glob("task/*/schedstat"))
    stat = pathlib.Path(f"/sys/dev/block/{os.major(drive)}:{os.minor(drive)}/stat")
    # A file system of several devices, or of none, has no such file.
    busy, together = (int(figure) / 1e3 for figure in stat.read_text().split()[9:11]) if stat.exists() else (0.0, 0.0)
    return time.monotonic(), int(io["read_bytes"]), cpu_ns / 1e9, busy, together


def watch(command, file, seconds):
    """A process's rates in the middle of its run; it is interrupted afterwards."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=said)
        time.sleep(START_SECONDS)
        looks = []
        for pause in (seconds, 0):
            if process.poll() is not None:
                said.seek(0)
                sys.exit(f"cold_records: {' '.join(map(str, command))} ended with {process.returncode}: {said.read().strip()}")
            looks.append(counters(process.pid, file.stat().st_dev))
            time.sleep(pause)
        process.send_signal(signal.SIGINT)
        process.wait()
    took, read, cpu, busy, together = (b - a for a, b in zip(*looks))
    if read == 0:
        sys.exit(f"cold_records: {' '.join(map(str, command))} read nothing from a drive: is {file.parent} in memory?")
    return {"gib_per_s": read / took / GIB, "cpu_s_per_gib": cpu / read * GIB, "drive_busy": busy / took,
            "drive_depth": together / took}


def window_bytes(leat, windows):
    """What one window's reads are on average, with alignment."""
    command = [leat, "bench", "read", *windows, "--pattern", "extents", "--seconds", "0.5", "--direct", "on", "--json"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"cold_records: {' '.join(map(str, command))} failed: {done.stderr.strip()}")
    told = json.loads(done.stdout)
    row = told["rows"][0]
    return row["gib_per_s"] * GIB / row["samples_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leat", default="build/release/leat", type=pathlib.Path)
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--gib", default=2, type=int, help="of records, and of tokens")
    parser.add_argument("--seconds", default=5, type=float, help="that each is watched for")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    records, tokens = given.folder / "records.bin", given.folder / "tokens.bin"
    make(records, given.gib << 30)
    make(tokens, given.gib << 30)
    records.with_suffix(".json").write_text(
        json.dumps({"fields": [{"name": "x", "dtype": "u8", "shape": [RECORD_BYTES]}]}))

    windows = [tokens, "--tokens", WINDOW_TOKENS, "--windows", "random"]
    in_order = [tokens, "--tokens", WINDOW_TOKENS, "--no-shuffle"]
    endless = ["--epochs", "1000000", "--direct", "on", "--digest", "off", "--json"]
    bench = ["--pattern", "extents", "--seconds", "3600", "--direct", "on", "--json"]
    commands = {
        "bench_records": ([given.leat, "bench", "read", records, *bench], records),
        "records": ([given.leat, "epoch", records, "--batch-size", "16", *endless], records),
        "bench_windows": ([given.leat, "bench", "read", *windows, *bench], tokens),
        "windows": ([given.leat, "epoch", *windows, "--batch-size", "12", *endless], tokens),
        "bench_in_order": ([given.leat, "bench", "read", *in_order, *bench], tokens),
        "in_order": ([given.leat, "epoch", *in_order, "--batch-size", "12", *endless], tokens)}
    per_window = window_bytes(given.leat, windows)
    rows = []
    for number in range(given.rounds):
        names = list(commands) if number % 2 == 0 else list(commands)[::-1]
        seen = {name: watch(*commands[name], given.seconds) for name in names}
        row = {f"{name}_{figure}": value for name in commands for figure, value in seen[name].items()}
        row |= {f"{name}_of_drive": seen[name]["gib_per_s"] / seen[f"bench_{name}"]["gib_per_s"] for name in ("records", "windows", "in_order")}
        row |= {"windows_per_s": seen["windows"]["gib_per_s"] * GIB / per_window,
                "window_cpu_us": seen["windows"]["cpu_s_per_gib"] / GIB * per_window * 1e6}
        rows.append(row)
    medians = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    if given.json:
        print(json.dumps({"medians": medians, "rounds": rows}, indent=2))
        return
    for name, median in medians.items():
        values = [row[name] for row in rows]
        print(f"{name:28} {median:10.4g}  ({min(values):.4g}..{max(values):.4g})")


if __name__ == "__main__":
    main()
