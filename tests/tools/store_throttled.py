#!/usr/bin/env python3
"""Shards are opened from a store that lets so many requests a second through: how long that takes beside the least that it can, and how many
requests are refused.

    store_throttled.py LEAT [--shards 1000] [--rate 50]

The least is the time in which the store lets all requests through that opening needs. The store and its proxy (scripts/throttled) run on this machine.
"""
import argparse
import json
import pathlib
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

import store_killed

root = pathlib.Path(__file__).resolve().parents[2]
samples_a_shard = 4


def make_shards(folder, count):
    (folder / "sample").write_bytes(bytes(500))
    for shard in range(count):
        with tarfile.open(folder / f"train-{shard:06}.tar", "w", format=tarfile.USTAR_FORMAT) as made:
            for sample in range(samples_a_shard):
                made.add(folder / "sample", f"{samples_a_shard * shard + sample:08}.bin")


def main():
    read = argparse.ArgumentParser(usage=__doc__)
    read.add_argument("leat")
    read.add_argument("--shards", type=int, default=1000)
    read.add_argument("--rate", type=float, default=50)
    told = read.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_shards(pathlib.Path(folder), told.shards)
        store = store_killed.serve(folder, 0)
        proxy = subprocess.Popen([sys.executable, root / "scripts/throttled", store.stdout.readline().strip(), str(told.rate)],
                                 stdout=subprocess.PIPE, text=True)
        source = f"http://127.0.0.1:{proxy.stdout.readline().strip()}/train-{{000000..{told.shards - 1:06}}}.tar"
        began = time.monotonic()
        run = subprocess.run([told.leat, "inspect", source, "--allow-http", "--index-use", "off", "--json"], capture_output=True, text=True)
        took = time.monotonic() - began
        proxy.send_signal(signal.SIGTERM)
        said = proxy.communicate()[0]
        store.kill()
        store.wait()
    passed, refused, late_passed, late_refused = map(int, re.findall(r" (\d+)", said))
    least = passed / told.rate
    print(f"{told.shards} shards at {told.rate:g} requests/s: {took:.1f} s, {took / least:.2f} of the least ({passed} requests, {least:.1f} s); "
          f"refused {refused}, and after five seconds {100 * late_refused / max(1, late_passed + late_refused):.1f} %")
    if run.returncode != 0 or json.loads(run.stdout)["samples"] != samples_a_shard * told.shards:
        sys.exit(f"it was not opened: {run.stdout[:1000]}\n{run.stderr[-1000:]}")


if __name__ == "__main__":
    main()
