#!/usr/bin/env python3
"""What do samples of tables and records cost, in leat and in the loaders that people have for them?

    benchmarks/peers/tables.py --data PHOTOS [--rounds 5] [--only NAME ...] [--leat build/release/leat] [--venv DIR] [--made DIR]

CPU time of the process and its workers, each round one after another, batches of 64; medians with the lowest and the highest. Files are in the
page cache, but for `lmdb`, where it is dropped before each run (by root; else it stays warm, and that is said).

  lmdb       values of 12 and of 110 KB in random order, beside py-lmdb without readahead in DataLoader(2)
  parquet    photographs (PLAIN), to random 224-pixel crops, f32: beside the same bytes in a tar, and datasets as a map in DataLoader(2)
             and streaming, with PIL and torchvision
  snappy     the same, packed, 4 row groups at a time, beside datasets streaming with shuffle(1000)
  text       opening a million lines of JSON and of CSV (quotes), beside load_dataset() without a cache
  arrow      opening a million rows in 1,000 batches
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # Nothing of this is to lie about in the repository.
here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
batch_size = 64
lines = 1_000_000
packages = ("torch", "torchvision", "pillow", "numpy", "lmdb", "pyarrow", "datasets")


def photographs(folder):
    classes = sorted(each for each in folder.iterdir() if each.is_dir())
    return [(file, label) for label, of in enumerate(classes) for file in sorted(of.iterdir()) if file.is_file()]


def make(folder, photos):
    """Writes the files, once; runs in the virtual environment."""
    import lmdb
    import numpy
    import pyarrow
    import pyarrow.parquet

    drawn = numpy.random.default_rng(1)
    for kilobytes, count in ((12, 20_000), (110, 3_000)):
        env = lmdb.open(str(folder / f"values-{kilobytes}.lmdb"), map_size=1 << 34)
        with env.begin(write=True) as txn:
            for i in range(count):
                txn.put(b"%08d" % i, drawn.bytes(kilobytes * 1024))
        env.close()
    files = photographs(photos)
    features = {"info": {"features": {"image": {"_type": "Image"},
                                      "label": {"names": [str(i) for i in range(1 + max(c for _, c in files))], "_type": "ClassLabel"}}}}
    pictures = pyarrow.table({
        "image": pyarrow.array([{"bytes": file.read_bytes(), "path": None} for file, _ in files],
                               pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])),
        "label": pyarrow.array([label for _, label in files], pyarrow.int64()),
    }).replace_schema_metadata({"huggingface": json.dumps(features)})
    for name, codec in (("plain", "NONE"), ("snappy", "SNAPPY")):
        pyarrow.parquet.write_table(pictures, folder / f"{name}.parquet", compression=codec, use_dictionary=False, row_group_size=25)
    words = random.Random(2)
    with open(folder / "lines.jsonl", "w") as jsonl, open(folder / "rows.csv", "w") as rows:
        rows.write("text,label\n")
        for i in range(lines):
            text = " ".join(f"w{words.randrange(10_000)}" for _ in range(10))
            jsonl.write(json.dumps({"text": text, "label": i % 10}) + "\n")
            rows.write(f'"{text}, and ""more""",{i % 10}\n')
    table = pyarrow.table({"bytes": pyarrow.array([b"%d" % i for i in range(lines)]), "label": pyarrow.array(range(lines))})
    with pyarrow.OSFile(str(folder / "batches.arrow"), "wb") as file, pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=lines // 1000)


def work(what, folder, photos):
    """What a peer does; prints the CPU time that it took, without its imports."""
    import resource

    import torch

    torch.set_num_threads(1)

    def cpu_s():
        return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

    def crops():
        from torchvision import transforms

        return transforms.Compose([
            transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
            transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])

    def taken(loader):
        return sum(len(batch) if isinstance(batch, list) else len(batch[0]) for batch in loader)

    name, _, how = what.partition(":")
    if name == "lmdb":
        import lmdb

        class Values(torch.utils.data.Dataset):
            env = None

            def __len__(self):
                return {"12": 20_000, "110": 3_000}[how]

            def __getitem__(self, i):
                if self.env is None:
                    self.env = lmdb.open(str(folder / f"values-{how}.lmdb"), readonly=True, lock=False, readahead=False)
                with self.env.begin() as txn:
                    return torch.frombuffer(bytearray(txn.get(b"%08d" % i)), dtype=torch.uint8)

        began, at = cpu_s(), time.monotonic()
        count = 0
        for batch in torch.utils.data.DataLoader(Values(), batch_size=batch_size, shuffle=True, num_workers=2):
            count += len(batch)
    elif name in ("map", "stream", "shuffled"):
        import datasets

        datasets.disable_progress_bars()
        file = folder / ("snappy.parquet" if name == "shuffled" else "plain.parquet")
        crop = crops()
        kept = tempfile.mkdtemp(dir=folder)
        loaded = datasets.load_dataset("parquet", data_files=str(file), split="train", streaming=name != "map", cache_dir=kept)
        if name == "shuffled":
            loaded = loaded.shuffle(seed=1, buffer_size=1000)
        if name == "map":
            loaded = loaded.with_transform(lambda rows: {
                "image": [crop(each.convert("RGB")) for each in rows["image"]], "label": rows["label"]})
        else:
            loaded = loaded.map(lambda row: {"image": crop(row["image"].convert("RGB")), "label": row["label"]})
        collate = lambda rows: (torch.stack([torch.as_tensor(row["image"]) for row in rows]), [row["label"] for row in rows])
        workers = 2 if name == "map" else 0
        began, at = cpu_s(), time.monotonic()
        count = 0
        for pictures, _ in torch.utils.data.DataLoader(loaded, batch_size=batch_size, shuffle=name == "map", num_workers=workers,
                                                       collate_fn=collate, multiprocessing_context="fork" if workers else None):
            count += len(pictures)
        shutil.rmtree(kept)
    else:
        import datasets

        datasets.disable_progress_bars()
        kept = tempfile.mkdtemp(dir=folder)
        began, at = cpu_s(), time.monotonic()
        count = len(datasets.load_dataset(how, data_files=str(folder / {"json": "lines.jsonl", "csv": "rows.csv"}[how]),
                                          split="train", cache_dir=kept))
        shutil.rmtree(kept)
    print(json.dumps({"samples": count, "cpu_s": cpu_s() - began, "seconds": time.monotonic() - at}))


def run(command):
    done = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def drop_page_cache():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")


def measure(given, python, folder):
    def leat(source, *options):
        said = run([given.leat, "epoch", folder / source, "--batch-size", batch_size, "--digest", "off", "--json", "--index-use", "off", *options])
        if said["quarantined"]:
            sys.exit(f"leat left out {said['quarantined']} samples of {source}")
        return said

    def peer(what):
        return run([python, __file__, "--work", what, "--made", given.made, "--data", given.data])

    cold = os.access("/proc/sys/vm/drop_caches", os.W_OK)
    tables = {
        "lmdb": [(f"LMDB, values of {size} KB{'' if cold else ' (warm)'}", {
            "leat": lambda size=size: leat(f"values-{size}.lmdb", "--shuffle"),
            "leat, O_DIRECT": lambda size=size: leat(f"values-{size}.lmdb", "--shuffle", "--direct", "on"),
            "py-lmdb, DataLoader(2)": lambda size=size: peer(f"lmdb:{size}")}) for size in (12, 110)],
        "parquet": [("Parquet, PLAIN, photographs to crops", {
            "leat": lambda: leat("plain.parquet", "--epochs", "4"), "leat, tar": lambda: leat("photos.tar", "--epochs", "4"),
            "datasets, map, DataLoader(2)": lambda: peer("map"), "datasets, streaming": lambda: peer("stream")})],
        "snappy": [("Parquet, snappy, photographs to crops", {
            "leat, shuffled_blocks:4": lambda: leat("snappy.parquet", "--epochs", "4", "--order", "shuffled_blocks:4"),
            "datasets, streaming, shuffle(1000)": lambda: peer("shuffled")})],
        "text": [(f"a million lines of {name}, opened", {
            "leat": lambda file=file: leat(file, "--limit", "1"), "load_dataset()": lambda how=how: peer(f"load:{how}")})
            for name, file, how in (("JSON", "lines.jsonl", "json"), ("CSV", "rows.csv", "csv"))],
        "arrow": [("Arrow, a million rows in 1,000 batches, opened", {"leat": lambda: leat("batches.arrow", "--limit", "1")})],
    }
    for job in given.only or tables:
        for title, loaders in tables[job]:
            runs = {name: [] for name in loaders}
            for _ in range(given.rounds):
                for name, start in loaders.items():
                    if job == "lmdb" and cold:
                        drop_page_cache()
                    runs[name].append(start())
            report(title, runs, job in ("text", "arrow"))


def report(title, runs, is_opening):
    print(title)
    ours = next(iter(runs.values()))
    for name, each in runs.items():
        per = [run["cpu_s"] / (1 if is_opening else run["samples"]) for run in each]
        mine = [run["cpu_s"] / (1 if is_opening else run["samples"]) for run in ours]
        ratios = [theirs / our for our, theirs in zip(mine, per)]
        text = f"{statistics.median(per) * (1 if is_opening else 1e6):12.3f} {'CPU-seconds' if is_opening else 'us of CPU a sample'}"
        if is_opening and "open_seconds" in each[0]:
            text += f", opened in {statistics.median(run['open_seconds'] for run in each) * 1e3:.1f} ms"
        if each is not ours:
            text += f"; {statistics.median(ratios):.2f} times ours ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"  {name:36} {text}")
    sys.stdout.flush()


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a folder of class folders of photographs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=("lmdb", "parquet", "snappy", "text", "arrow"))
    parser.add_argument("--leat", type=pathlib.Path, default=root / "build" / "release" / "leat")
    parser.add_argument("--venv", type=pathlib.Path, help="a virtual environment with " + ", ".join(packages) + " (~/.cache/leat-peers)")
    parser.add_argument("--made", type=pathlib.Path, help="for the files, 1 GB (~/.cache/leat-peers-data/tables)")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args(given)
    import environments

    given.made = given.made or environments.cache / "leat-peers-data" / "tables"
    folder = given.made
    if given.work == "make":
        return make(folder, given.data)
    if given.work:
        return work(given.work, folder, given.data)
    if not given.leat.exists():
        sys.exit(f"{given.leat}: no such program; `cmake --build build/release` builds it")
    python = (given.venv or environments.usual_place) / "bin" / "python"
    check = "import torch, torchvision, PIL, numpy, lmdb, pyarrow, datasets"
    if not python.exists() or environments.trouble(python, check) is not None:
        environments.make(python.parent.parent)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    if not (folder / "photos.tar").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        subprocess.run([python, __file__, "--work", "make", "--made", folder, "--data", given.data], check=True)
        subprocess.run([given.leat, "pack", given.data, folder / "photos.tar"], check=True, stdout=subprocess.DEVNULL)
    measure(given, python, folder)


if __name__ == "__main__":
    main()
