"""records.py TABLE_VALUES SEEDS: databases that py-lmdb writes and files that the `tfrecord` package writes, of drawn keys, transactions and
values: what these libraries read, and what leat does (by the program TABLE_VALUES).

Prints how many values are the same, and exits 1 where one differs, or leat refuses a field.
"""

import os
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import tempfile

import lmdb
import msgpack
import numpy
import tfrecord

MISSING = 2**64 - 1
program, seeds = sys.argv[1], int(sys.argv[2])


def rows_of(path, name):
    """Each row's bytes; None where it has none."""
    done = subprocess.run([program, path, name], capture_output=True, timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"{path}: {name}: exit status {done.returncode}: {done.stderr.decode()}")
    end = done.stdout.index(b"\n")
    rows, at = [], end + 1
    for _ in range(int(done.stdout[:end].split()[2])):
        size = struct.unpack_from("<Q", done.stdout, at)[0]
        at += 8
        rows.append(None if size == MISSING else done.stdout[at : at + size])
        at += 0 if size == MISSING else size
    return rows


def drawn_bytes(draw):
    # In leaves, and on pages of their own.
    return draw.randbytes(draw.choice([0, 1, 30, 700, 2030, 2100, 9000]))


def drawn_record(draw):
    return {"image": drawn_bytes(draw), "label": draw.randrange(-(2**40), 2**40), "score": draw.gauss(0, 9),
            "text": "größe " * draw.randrange(60), "meta": {"ids": [draw.randrange(1000) for _ in range(draw.randrange(5))]}}


def write_lmdb(path, seed):
    """What the field "value" or the fields of a record have to be, in the order of the keys."""
    draw = random.Random(seed)
    how = draw.choice(["plain", "plain", "msgpack", "pickle"])
    make = {"plain": drawn_bytes, "msgpack": lambda d: msgpack.packb(drawn_record(d)),
            "pickle": lambda d: pickle.dumps(drawn_record(d), protocol=d.choice([3, 4, 5]))}[how]
    environment = lmdb.open(path, map_size=1 << 28, lock=False, subdir=draw.random() < 0.5, max_dbs=2)
    name = draw.choice([None, None, b"train"])
    database = environment.open_db(name) if name else None
    for _ in range(draw.randrange(1, 12)):
        with environment.begin(write=True, db=database) as transaction:
            for _ in range(draw.choice([1, 30, 400])):
                key = b"key %0*d" % (draw.choice([3, 3, 200]), draw.randrange(900))
                if draw.random() < 0.2:
                    transaction.delete(key)
                else:
                    transaction.put(key, make(draw))
    with environment.begin(db=database) as transaction:
        values = [bytes(value) for _, value in transaction.cursor()]
    environment.close()
    if how == "plain":
        return {"value": values}
    records = [msgpack.unpackb(each) if how == "msgpack" else pickle.loads(each) for each in values]
    return {"image": [each["image"] for each in records], "label": [each["label"] for each in records],
            "score": [each["score"] for each in records], "text": [each["text"] for each in records],
            "meta.ids": [each["meta"]["ids"] for each in records]}


def write_tfrecord(path, seed):
    draw = random.Random(f"tfrecord {seed}")
    samples = []
    writer = tfrecord.TFRecordWriter(path)
    for _ in range(draw.choice([1, 20, 300])):
        sample = {"image": drawn_bytes(draw) or b"x", "label": draw.randrange(-(2**62), 2**62),
                  "box": [float(numpy.float32(draw.gauss(0, 1))) for _ in range(draw.randrange(1, 6))],
                  "ids": [draw.randrange(-5, 1000) for _ in range(draw.randrange(1, 40))]}
        writer.write({"image": (sample["image"], "byte"), "label": (sample["label"], "int"), "box": (sample["box"], "float"),
                      "ids": (sample["ids"], "int")})
        samples.append(sample)
    writer.close()
    # Its reader agrees with what was written, else there is nothing to compare with.
    kinds = {"image": "byte", "label": "int", "box": "float", "ids": "int"}
    for sample, read in zip(samples, tfrecord.reader.tfrecord_loader(path, None, kinds), strict=True):
        if bytes(read["image"]) != sample["image"] or list(read["ids"]) != sample["ids"]:
            raise RuntimeError(f"{path}: tfrecord reads others than it wrote")
    return {name: [each[name] for each in samples] for name in kinds}


def same(value, got):
    if got is None:
        return False
    if isinstance(value, bytes):
        return got == value
    if isinstance(value, str):
        return got.decode() == value
    if isinstance(value, float):
        return float(got) == value
    if isinstance(value, list):
        # An array's numbers are written as few digits as give the same number of its type again.
        words = got.decode().split()
        return len(words) == len(value) and all(
            numpy.float32(word) == numpy.float32(each) if isinstance(each, float) else int(word) == each for word, each in zip(words, value))
    return int(got) == value


compared = {"LMDB": 0, "TFRecord": 0}
differ = []
for seed in range(seeds):
    with tempfile.TemporaryDirectory() as folder:
        for format, write, path in (("LMDB", write_lmdb, "set.lmdb"), ("TFRecord", write_tfrecord, "set.tfrecord")):
            path = os.fspath(pathlib.Path(folder) / path)
            expected = write(path, seed)
            if not next(iter(expected.values())):
                continue
            for name, values in expected.items():
                try:
                    got = rows_of(path, name)
                except (RuntimeError, subprocess.TimeoutExpired) as failure:
                    differ.append(f"seed {seed}: {failure}")
                    continue
                if len(got) != len(values):
                    differ.append(f"seed {seed}, {format}, {name}: {len(got)} rows of {len(values)}")
                    continue
                for i, (value, each) in enumerate(zip(values, got)):
                    compared[format] += 1
                    if not same(value, each):
                        differ.append(f"seed {seed}, {format}, {name}, row {i}: {each!r:.60} for {value!r:.60}")
for format, count in compared.items():
    print(f"{format}: {count} values of {seeds} sets were compared")
print(f"records: {len(differ)} differ")
for each in differ[:20]:
    print("differs:", each)
sys.exit(1 if differ else 0)
