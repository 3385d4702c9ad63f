#!/usr/bin/env python3
"""Writes one set in many formats, for tests/loader/same_tables_test.cpp: pip install pyarrow lmdb tfrecord pillow, then run it in this
directory.

Sample i, of 20, has a JPEG of 24 x 20, the label i // 5 and the caption "picture i", which has a comma, quotes and letters beyond ASCII.
The pictures lie in pictures/ as well, which set.jsonl and set.csv name; in all other formats they lie within.
MDS is written by its format's description (mosaicml-streaming: streaming/base/format/mds).
"""
import csv
import io
import json
import os
import shutil
import struct

import lmdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from tfrecord.writer import TFRecordWriter

SAMPLES = range(20)


def picture(i):
    to = io.BytesIO()
    x, y = np.meshgrid(np.arange(24), np.arange(20))
    Image.fromarray(np.stack([x * 9 + i, y * 11, x * y + 7 * i], -1).astype(np.uint8)).save(to, "JPEG", quality=70)
    return to.getvalue()


def caption(i):
    return f'picture {i}, "größe" {"€" * (i % 4)}'


pictures = [picture(i) for i in SAMPLES]
captions = [caption(i) for i in SAMPLES]
labels = [i // 5 for i in SAMPLES]

shutil.rmtree("pictures", ignore_errors=True)
os.mkdir("pictures")
for i in SAMPLES:
    with open(f"pictures/{i:02d}.jpg", "wb") as to:
        to.write(pictures[i])

table = pa.table({
    "image": pa.array([{"bytes": pictures[i], "path": f"{i}.jpg"} for i in SAMPLES],
                      pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
    "label": pa.array(labels, pa.int64()),
    "caption": pa.array(captions, pa.string()),
}).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": {"image": {"_type": "Image"}}}})})
pq.write_table(table, "bare.parquet", compression="none", use_dictionary=False, row_group_size=6)
pq.write_table(table, "packed.parquet", compression="snappy", row_group_size=6)
for name, compression in {"bare": None, "packed": "lz4"}.items():
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(f"{name}.arrow", "wb") as to, pa.ipc.new_file(to, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=6)

if os.path.exists("set.mdb"):
    os.remove("set.mdb")
environment = lmdb.open("set.mdb", map_size=1 << 22, lock=False, subdir=False)
with environment.begin(write=True) as transaction:
    for i in SAMPLES:
        transaction.put(b"image-%09d" % i, pictures[i])
        transaction.put(b"label-%09d" % i, b"%d" % labels[i])
        transaction.put(b"caption-%09d" % i, captions[i].encode())
environment.close()

writer = TFRecordWriter("set.tfrecord")
for i in SAMPLES:
    writer.write({"image": (pictures[i], "byte"), "label": (labels[i], "int"), "caption": (captions[i].encode(), "byte")})
writer.close()

with open("set.jsonl", "w") as to:
    for i in SAMPLES:
        to.write(json.dumps({"file_name": f"pictures/{i:02d}.jpg", "label": labels[i], "caption": captions[i]},
                            ensure_ascii=i % 2 == 0) + "\n")
with open("set.csv", "w", newline="") as to:
    rows = csv.writer(to)
    rows.writerow(["file_name", "label", "caption"])
    for i in SAMPLES:
        rows.writerow([f"pictures/{i:02d}.jpg", labels[i], captions[i]])

shutil.rmtree("mds", ignore_errors=True)
os.mkdir("mds")
names, encodings, sizes = ["caption", "image", "label"], ["str", "jpeg", "int"], [None, None, 8]
shards = []
for number, first in enumerate(range(0, len(SAMPLES), 8)):
    samples = []
    for i in SAMPLES[first:first + 8]:
        values = [captions[i].encode(), pictures[i], struct.pack("<q", labels[i])]
        head = struct.pack("<II", len(values[0]), len(values[1]))
        samples.append(head + b"".join(values))
    config = json.dumps({"version": 2, "format": "mds", "compression": None, "hashes": [], "size_limit": 1 << 26,
                         "column_names": names, "column_encodings": encodings, "column_sizes": sizes}, sort_keys=True).encode()
    at = 4 + 4 * (len(samples) + 1) + len(config)
    offsets = [at]
    for sample in samples:
        offsets.append(offsets[-1] + len(sample))
    content = struct.pack("<I", len(samples)) + struct.pack(f"<{len(offsets)}I", *offsets) + config + b"".join(samples)
    basename = f"shard.{number:05d}.mds"
    with open(f"mds/{basename}", "wb") as to:
        to.write(content)
    shards.append({"version": 2, "format": "mds", "compression": None, "hashes": [], "size_limit": 1 << 26, "zip_data": None,
                   "samples": len(samples), "column_names": names, "column_encodings": encodings, "column_sizes": sizes,
                   "raw_data": {"basename": basename, "bytes": len(content), "hashes": {}}})
with open("mds/index.json", "w") as to:
    json.dump({"version": 2, "shards": shards}, to)
