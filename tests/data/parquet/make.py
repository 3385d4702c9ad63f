#!/usr/bin/env python3
"""Writes the Parquet files of tests/datasets/parquet_test.cpp: pip install pyarrow, then run it in this directory.

The value in a row is always known from the row's number, so that the test knows it:
  image    a struct of bytes, a JPEG's first bytes and the number as text so many times, and of the path; null in rows 5, 15, ...
  text     "text " and the number; null in rows 3, 10, 17, ...
  label    number % 3, by the Hub's metadata a class;  id  number * 1000003 - 500;  score  number / 4;  half  likewise
  species  "s" and number * 7 % 5;  flag  number % 3 == 0;  fixed  4 bytes, the number;  gaps  the number, null in odd rows
"""
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 100
NAMES = ["cat", "dog", "eel"]


def table():
    rows = range(ROWS)
    image = pa.array(
        [None if i % 10 == 5 else {"bytes": b"\xff\xd8\xff\xe0" + str(i).encode() * (i * 7 % 23), "path": f"{i}.jpg"}
         for i in rows], pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    columns = {
        "image": image,
        "text": pa.array([None if i % 7 == 3 else f"text {i}" for i in rows], pa.string()),
        "label": pa.array([i % 3 for i in rows], pa.int64()),
        "id": pa.array([i * 1000003 - 500 for i in rows], pa.int64()),
        "small": pa.array([i * 2 for i in rows], pa.uint8()),
        "score": pa.array([i / 4 for i in rows], pa.float32()),
        "wide": pa.array([i / 4 for i in rows], pa.float64()),
        "half": pa.array(np.arange(ROWS, dtype=np.float16) / 4),
        "species": pa.array([f"s{i * 7 % 5}" for i in rows], pa.string()),
        "flag": pa.array([i % 3 == 0 for i in rows], pa.bool_()),
        "fixed": pa.array([i.to_bytes(4, "little") for i in rows], pa.binary(4)),
        "gaps": pa.array([i if i % 2 == 0 else None for i in rows], pa.int32()),
        "when": pa.array([i * 1000 for i in rows], pa.timestamp("us")),
        "ids": pa.array([list(range(i % 4)) for i in rows], pa.list_(pa.int32())),
    }
    made = pa.table(columns)
    features = {"image": {"_type": "Image"}, "label": {"names": NAMES, "_type": "ClassLabel"},
                "text": {"dtype": "string", "_type": "Value"}}
    return made.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


whole = table()
bare = dict(compression="none", use_dictionary=False, row_group_size=40, data_page_size=100, write_batch_size=8)
pq.write_table(whole, "bare-v1.parquet", data_page_version="1.0", **bare)
pq.write_table(whole, "bare-v2.parquet", data_page_version="2.0", write_page_index=True, **bare)
# As the Hub's libraries write a set: pictures bare, all others packed.
media = ["image.bytes"]
others = ["image.path", "text", "label", "id", "small", "score", "wide", "half", "species", "flag", "fixed", "gaps", "when",
          "ids.list.element"]
pq.write_table(whole, "hub.parquet", compression={**{n: "none" for n in media}, **{n: "snappy" for n in others}},
               use_dictionary=others, write_page_index=True, row_group_size=64, data_page_size=200, write_batch_size=8)
numbers = whole.select(["label", "id", "small", "score", "wide", "half", "species", "flag", "gaps", "text"])
for codec in ["snappy", "gzip", "zstd", "lz4"]:
    pq.write_table(numbers, f"packed-{codec}.parquet", compression=codec, row_group_size=30, write_batch_size=8,
                   data_page_version="2.0" if codec == "gzip" else "1.0", data_page_size=64,
                   use_dictionary=codec != "zstd",
                   column_encoding=None if codec != "zstd" else {
                       "label": "DELTA_BINARY_PACKED", "id": "DELTA_BINARY_PACKED", "small": "PLAIN",
                       "score": "BYTE_STREAM_SPLIT", "wide": "BYTE_STREAM_SPLIT", "half": "BYTE_STREAM_SPLIT",
                       "species": "DELTA_BYTE_ARRAY", "flag": "RLE", "gaps": "DELTA_BINARY_PACKED",
                       "text": "DELTA_LENGTH_BYTE_ARRAY"})
pq.write_table(whole.select(["text", "id"]), "brotli.parquet", compression="brotli")
# Two columns of one name, and a column that is text in the others.
twice = pa.Table.from_arrays([pa.array([b"x", b"y"]), pa.array([b"1", b"2"]), pa.array([7, 8])], ["a", "a", "species"])
pq.write_table(twice, "twice.parquet", compression="none", use_dictionary=False)
# Pictures that a decoder reads, as they lie and packed: pip install pillow.
import io

from PIL import Image


def picture(i):
    to = io.BytesIO()
    x, y = np.meshgrid(np.arange(24), np.arange(20))
    Image.fromarray(np.stack([x * 9 + i, y * 11, x * y + 7 * i], -1).astype(np.uint8)).save(to, "JPEG", quality=70)
    return {"bytes": to.getvalue(), "path": f"{i}.jpg"}


pictures = pa.table({"image": pa.array([picture(i) for i in range(20)],
                                       pa.struct([("bytes", pa.binary()), ("path", pa.string())]))})
features = {"image": {"_type": "Image"}}
pictures = pictures.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
pq.write_table(pictures, "pictures-bare.parquet", compression="none", use_dictionary=False, row_group_size=6)
pq.write_table(pictures, "pictures-packed.parquet", compression="snappy", row_group_size=6)
# Lists of numbers: null in rows 2, 13, 24 ..., empty in others, over pages and row groups.
def listed(make, kind):
    return pa.array([None if i % 11 == 2 else make(i) for i in range(ROWS)], pa.list_(kind))


lists = pa.table({
    "ids": listed(lambda i: list(range(i % 4)), pa.int32()),
    "wide": listed(lambda i: [i * 1000003 - k for k in range(i % 7)], pa.int64()),
    "small": listed(lambda i: [(i + k) % 256 for k in range(i % 3)], pa.uint8()),
    "scores": listed(lambda i: [i / 4] * (i % 5), pa.float32()),
    "doubles": listed(lambda i: [i / 8, -i / 8], pa.float64()),
    "flags": listed(lambda i: [i % 2 == 0, True, False], pa.bool_()),
    "objects": pa.array([[{"category": i + k, "name": "x"} for k in range(i % 3)] for i in range(ROWS)],
                        pa.list_(pa.struct([("category", pa.int32()), ("name", pa.string())]))),
    "inside": pa.array([{"ids": [i] * (i % 2)} for i in range(ROWS)], pa.struct([("ids", pa.list_(pa.int32()))])),
    "deep": pa.array([[[i]] for i in range(ROWS)], pa.list_(pa.list_(pa.int32()))),
    "texts": pa.array([["x"] * (i % 2) for i in range(ROWS)], pa.list_(pa.string())),
})
small_pages = dict(row_group_size=40, data_page_size=64, write_batch_size=8)
pq.write_table(lists, "lists-bare.parquet", compression="none", use_dictionary=False, **small_pages)
pq.write_table(lists, "lists-snappy.parquet", compression="snappy", **small_pages)
pq.write_table(lists, "lists-zstd.parquet", compression="zstd", use_dictionary=False, data_page_version="2.0", **small_pages)
pq.write_table(pa.table({"list": [[1, None, 3], [4]], "id": [1, 2]}), "lists-with-nulls.parquet")
# Encrypted, some columns and the footer. The keys lie within: these files hide nothing.
import base64

import pyarrow.parquet.encryption as pe


class Keys(pe.KmsClient):
    def __init__(self, connection):
        pe.KmsClient.__init__(self)

    def wrap_key(self, key, name):
        return base64.b64encode(name.encode() + b":" + key)

    def unwrap_key(self, wrapped, name):
        return base64.b64decode(wrapped)[len(name) + 1:]


secret = pa.table({"a": [b"x", b"y"], "b": [1, 2]})
for name, plain in {"encrypted-columns": True, "encrypted-footer": False}.items():
    how = pe.EncryptionConfiguration(footer_key="footer", column_keys={"column": ["a"]}, plaintext_footer=plain)
    properties = pe.CryptoFactory(Keys).file_encryption_properties(pe.KmsConnectionConfig(), how)
    with pq.ParquetWriter(f"{name}.parquet", secret.schema, compression="none", encryption_properties=properties) as writer:
        writer.write_table(secret)
