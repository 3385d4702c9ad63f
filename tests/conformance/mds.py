#!/usr/bin/env python3
"""Shards of MDS with columns and values that are drawn: what MosaicML's own library reads, and what leat does.

    mds.py ARRAY_BYTES SETS     the program beside this, and how many sets

Prints how many values are the same, and exits 1 where one differs, or leat refuses a column.
"""
import io
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "data" / "mds"))
from streaming_alone import MDSReader, MDSWriter

program, sets = sys.argv[1], int(sys.argv[2])
array_types = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"]


def picture(draw):
    shape = (draw.randrange(1, 20), draw.randrange(1, 20), 3)
    return Image.fromarray(np.frombuffer(draw.randbytes(int(np.prod(shape))), "u1").reshape(shape))


def jpeg(draw):
    file = io.BytesIO()
    picture(draw).save(file, "JPEG")
    file.seek(0)
    return Image.open(file)


def array(draw, dtype, shape):
    count = int(np.prod(shape))
    return np.array([draw.randrange(0, 100) for _ in range(count)], dtype).reshape(shape)


def text(draw):
    return "".join(draw.choice("ab ä€\n") for _ in range(draw.randrange(0, 30)))


def column(draw):
    """An encoding, and a function that draws a value."""
    dtype = draw.choice(array_types)
    shape = tuple(draw.randrange(1, 4) for _ in range(draw.randrange(1, 4)))
    return draw.choice([
        ("int", lambda d: d.randrange(-(2**63), 2**63)),
        (dtype if dtype[0] in "ui" else "uint8", lambda d: d.randrange(0, 100)),
        ("float16", lambda d: d.randrange(-1000, 1000) / 8),
        ("float32", lambda d: float(np.float32(d.gauss(0, 1e6)))),
        ("float64", lambda d: d.gauss(0, 1e-6)),
        ("str", text),
        ("bytes", lambda d: d.randbytes(d.randrange(0, 300))),
        ("json", lambda d: {"a": d.randrange(100), "b": [text(d)]}),
        ("str_int", lambda d: d.randrange(-(10**12), 10**12)),
        ("jpeg", jpeg),
        ("png", picture),
        (f"ndarray:{dtype}", lambda d: array(d, dtype, (d.randrange(1, 700),))),
        (f"ndarray:{dtype}:{','.join(map(str, shape))}", lambda d: array(d, dtype, shape)),
    ])


def same(encoding, value, got):
    if encoding == "json":
        return json.loads(got) == value
    if encoding in ("jpeg", "png"):
        return np.array_equal(np.asarray(Image.open(io.BytesIO(got)).convert("RGB")), np.asarray(value.convert("RGB")))
    if encoding.startswith("ndarray"):
        return got == np.ascontiguousarray(value).tobytes()
    if encoding == "bytes":
        return got == value
    if encoding.startswith("float"):
        return np.dtype(encoding).type(got.decode()) == value
    return got.decode() == str(value)


def rows_of(folder, name):
    """The values of a field as leat reads them."""
    done = subprocess.run([program, folder, name], capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"{name}: {done.stderr.decode()}")
    kept = io.BytesIO(done.stdout)
    line = kept.readline()
    while line.startswith(b"note "):
        line = kept.readline()
    rows = int(line.split()[3])
    return [kept.read(int.from_bytes(kept.read(8), "little")) for _ in range(rows)]


compared = 0
differ = []
for seed in range(sets):
    draw = random.Random(seed)
    columns = {f"c{i}": column(draw) for i in range(draw.randrange(1, 9))}
    with tempfile.TemporaryDirectory() as folder:
        out = folder + "/set"
        with MDSWriter(out=out, columns={name: each[0] for name, each in columns.items()}, size_limit=draw.choice([4000, 30000, 1 << 26])) as writer:
            for _ in range(draw.randrange(1, 60)):
                writer.write({name: each[1](draw) for name, each in columns.items()})
        shards = [MDSReader.from_json(out, None, each) for each in json.load(open(out + "/index.json"))["shards"]]
        expected = [shard.get_item(i) for shard in shards for i in range(shard.samples)]
        for name, (encoding, _) in columns.items():
            got = rows_of(out, name)
            if len(got) != len(expected):
                differ.append(f"set {seed}, {name} ({encoding}): {len(got)} rows of {len(expected)}")
                continue
            for i, (each, sample) in enumerate(zip(got, expected)):
                compared += 1
                if not same(encoding, sample[name], each):
                    differ.append(f"set {seed}, {name} ({encoding}), row {i}: {each[:40]} for {sample[name]!r:.60}")
print(f"MDS: {compared - len(differ)} of {compared} values of {sets} sets are the same")
for each in differ[:20]:
    print("differs:", each)
sys.exit(1 if differ else 0)
