#!/usr/bin/env python3
"""Writes the Arrow files of tests/datasets/arrow_test.cpp: pip install pyarrow polars, then run it in this directory.
saved/ is of Hugging Face's datasets: pip install datasets.

The values are those of ../parquet/make.py; beside them
  vector   three numbers from the row's on, f32;  ids  0 ... number % 4 - 1, i32, null in rows 2, 13, 24 ...;  large  "large " and the number
"""
import decimal
import json

import datasets
import polars
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 100
NAMES = ["cat", "dog", "eel"]
rows = range(ROWS)
image = pa.array([None if i % 10 == 5 else {"bytes": b"\xff\xd8\xff\xe0" + str(i).encode() * (i * 7 % 23), "path": f"{i}.jpg"}
                  for i in rows], pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
columns = {
    "image": image,
    "text": pa.array([None if i % 7 == 3 else f"text {i}" for i in rows], pa.string()),
    "label": pa.array([i % 3 for i in rows], pa.int64()),
    "small": pa.array([i * 2 for i in rows], pa.uint8()),
    "score": pa.array([i / 4 for i in rows], pa.float32()),
    "flag": pa.array([i % 3 == 0 for i in rows], pa.bool_()),
    "gaps": pa.array([i if i % 2 == 0 else None for i in rows], pa.int16()),
    "species": pa.array([None if i % 9 == 8 else f"s{i * 7 % 5}" for i in rows], pa.string()),
    "fixed": pa.array([i.to_bytes(4, "little") for i in rows], pa.binary(4)),
    "vector": pa.array([[i, i + 1, i + 2] for i in rows], pa.list_(pa.float32(), 3)),
    "ids": pa.array([None if i % 11 == 2 else list(range(i % 4)) for i in rows], pa.list_(pa.int32())),
    "large": pa.array([f"large {i}" for i in rows], pa.large_string()),
    "when": pa.array([i * 1000 for i in rows], pa.timestamp("us")),
    "kind": pa.array([f"k{i % 2}" for i in rows]).dictionary_encode(),
    "nested": pa.array([[["x"]] for _ in rows], pa.list_(pa.list_(pa.string()))),
    "after": pa.array([f"after {i}" for i in rows], pa.string()),
}
features = {"image": {"_type": "Image"}, "label": {"names": NAMES, "_type": "ClassLabel"}}
whole = pa.table(columns).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
with pa.OSFile("stream.arrow", "wb") as f, pa.ipc.new_stream(f, whole.schema) as writer:
    writer.write_table(whole, max_chunksize=30)
with pa.OSFile("file.arrow", "wb") as f, pa.ipc.new_file(f, whole.schema) as writer:
    writer.write_table(whole, max_chunksize=64)
packed = whole.drop_columns(["nested", "kind", "when"])
with pa.OSFile("lz4.arrow", "wb") as f, pa.ipc.new_file(f, packed.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
    writer.write_table(packed, max_chunksize=64)
with pa.OSFile("zstd.arrow", "wb") as f, pa.ipc.new_stream(f, packed.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
    writer.write_table(packed, max_chunksize=30)
# A column without a byte: what follows it begins at the same place of the file.
nothing = pa.table({"a": ["", ""], "b": pa.array([b"xy", b"zw"], pa.binary(2))})
with pa.OSFile("empty-column.arrow", "wb") as f, pa.ipc.new_file(f, nothing.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
    writer.write_table(nothing)
# Dictionaries: in a stream another one from the second batch on, to which the third adds; in a file one for all.
def words(batch, kind):
    numbers = [row % (2 + batch) for row in range(batch * 10, batch * 10 + 10)]
    values = pa.array([f"{kind} {i}" if kind != "w" else f"w{i}" for i in range(4 if kind == "w" else 2 + batch)])
    indices = pa.array([None if row % 7 == 5 else number for row, number in zip(range(batch * 10, batch * 10 + 10), numbers)],
                       pa.int8())
    return pa.DictionaryArray.from_arrays(indices, values)


def counted(batch, kind):
    number = pa.DictionaryArray.from_arrays(pa.array([0] * 10, pa.int16()), pa.array([7, 8]))
    return pa.record_batch({"word": words(batch, kind), "number": number, "text": pa.array([f"t{i}" for i in range(10)])})


streamed = [counted(batch, "first" if batch == 0 else "then") for batch in range(3)]
for name, codec in (("dictionaries.arrow", None), ("dictionaries-zstd.arrow", "zstd")):
    options = pa.ipc.IpcWriteOptions(compression=codec, emit_dictionary_deltas=True)
    with pa.OSFile(name, "wb") as f, pa.ipc.new_stream(f, streamed[0].schema, options=options) as writer:
        for each in streamed:
            writer.write_batch(each)
filed = [counted(batch, "w") for batch in range(3)]
with pa.OSFile("dictionaries-file.arrow", "wb") as f, pa.ipc.new_file(f, filed[0].schema) as writer:
    for each in filed:
        writer.write_batch(each)
# Polars writes views: short texts lie within them, long ones beside them. Nothing tells the length of what stands before the batches.
frame = polars.DataFrame({
    "text": [None if i % 7 == 3 else f"text {i}" * (i % 4) for i in rows],
    "label": list(rows),
    "bytes": [bytes([i]) * (i % 20) for i in rows],
})
frame.write_ipc("polars.arrow", compression="uncompressed", record_batch_size=40)
frame.write_ipc("polars-old.arrow", compression="zstd", compat_level=polars.CompatLevel.oldest(), record_batch_size=40)
# Three million values of no bytes.
empty = pa.table({"empty": pa.array([b""] * (3 << 20), pa.binary(0))})
for name, compression in {"empty": None, "empty-lz4": "lz4"}.items():
    with pa.OSFile(f"{name}.arrow", "wb") as f, pa.ipc.new_file(f, empty.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(empty, max_chunksize=1 << 20)
views = pa.table({"view": pa.array([[1], [2]], pa.list_view(pa.int32()))})
with pa.OSFile("views.arrow", "wb") as f, pa.ipc.new_file(f, views.schema) as writer:
    writer.write_table(views)

# Arrow 0.17 said so how a batch is packed. (This one is not.)
old = pa.table({"a": [1, 2, 3]})
with pa.OSFile("old-compression.arrow", "wb") as f, pa.ipc.new_file(f, old.schema) as writer:
    writer.write_batch(old.to_batches()[0], custom_metadata={"ARROW:experimental_compression": "LZ4"})

# A batch that becomes 400 MB.
large = pa.table({"large": pa.array([bytes(16_000_000)] * 25, pa.binary())})
with pa.OSFile("large.arrow", "wb") as f, pa.ipc.new_file(f, large.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
    writer.write_table(large)

# Files of one set whose columns stand in another order, or are of another type.
for name, columns in {
    "ab": {"a": ["cat", "dog"], "b": ["red", "blue"]},
    "ba": {"b": ["blue", "red"], "a": ["dog", "cat"]},
    "numbers": {"a": [5, 6], "b": ["red", "red"]},
    "nulls": {"list": [[1, None, 3], [4]]},
    "indices": {"indices": pa.array([0, 2, 4], pa.uint64())},
}.items():
    table = pa.table(columns)
    with pa.OSFile(f"{name}.arrow", "wb") as f, pa.ipc.new_file(f, table.schema) as writer:
        writer.write_table(table)

datasets.Dataset.from_dict({"text": [f"text {i}" for i in range(10)], "label": [i % 3 for i in range(10)]},
                           features=datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=NAMES)})
                           ).save_to_disk("saved", num_shards=2)

# A column of a union among others, in both forms that its buffers had.
union = pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])])
table = pa.table({"union": union, "text": ["x", "yy", "zzz"]})
for version in 4, 5:
    how = pa.ipc.IpcWriteOptions(metadata_version=getattr(pa.ipc.MetadataVersion, f"V{version}"))
    with pa.ipc.new_file(f"union-{version}.arrow", table.schema, options=how) as writer:
        writer.write_table(table)

# Dates, times and decimals; row 4 is null. The decimals are ever longer: of 32, 64 and 128 bits where they are stored as whole numbers.
def times(none=4):
    def column(values, kind):
        return pa.array([None if i == none else v for i, v in enumerate(values)], kind)
    return pa.table({
        "day": column([i * 100 - 150 for i in range(6)], pa.date32()),
        "clock": column([i * 3_600_500 for i in range(6)], pa.time32("ms")),
        "tick": column([i * 3_600_000_007 for i in range(6)], pa.time64("us")),
        "second": column([i * 86_401 - 200_000 for i in range(6)], pa.timestamp("s")),
        "milli": column([i * 86_400_001 - 200_000_000 for i in range(6)], pa.timestamp("ms", tz="UTC")),
        "micro": column([i * 1_000_003 - 2_000_000 for i in range(6)], pa.timestamp("us", tz="Europe/Berlin")),
        "nano": column([i * 1_000_000_007 - 2_000_000_000 for i in range(6)], pa.timestamp("ns")),
        "eve": column([i * 86_400_000 for i in range(6)], pa.date64()),
        "took": column([i * 1500 for i in range(6)], pa.duration("ms")),
        "rate": column([decimal.Decimal(i * 7 - 20).scaleb(-1) for i in range(6)], pa.decimal128(5, 1)),
        "price": column([decimal.Decimal(i * 99_999_999_999 - 10 ** 11).scaleb(-2) for i in range(6)], pa.decimal128(16, 2)),
        "long": column([decimal.Decimal((-1) ** i * (10 ** 36 // 3 + i)).scaleb(-10) for i in range(6)], pa.decimal128(38, 10)),
        "count": column([decimal.Decimal(i * 10 ** 15 - 10 ** 15) for i in range(6)], pa.decimal128(18, 0)),
        "wide": column([decimal.Decimal(i) for i in range(6)], pa.decimal256(50, 0)),
        "small": column([decimal.Decimal(i).scaleb(-3) for i in range(6)], pa.decimal32(4, 3)),
        "days": column([[i, -i] for i in range(6)], pa.list_(pa.date32())),
    })


for name, codec in [("times", None), ("times-zstd", "zstd")]:
    with pa.ipc.new_file(f"{name}.arrow", times().schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as out:
        out.write_table(times())

# A column of the same name in another unit.
milliseconds = pa.table({"second": pa.array([i * 1000 for i in range(6)], pa.timestamp("ms"))})
with pa.ipc.new_file("milliseconds.arrow", milliseconds.schema) as out:
    out.write_table(milliseconds)

# Arrays of the Hub whose shapes are known: of bytes, and one of which row 2 has another shape, row 3 none and row 4 a null in it.
def tensors():
    cubes = [[[[i, i + 1], [i + 2, i + 3]], [[i + 4, i + 5], [250, 251]], [[0, 0], [0, 255]]] for i in range(6)]
    grids = [[[i * 0.5, 1.0, 2.0], [3.0, 4.0, float(i)]] for i in range(6)]
    grids[2] = [[1.0], [2.0, 3.0, 4.0, 5.0, 6.0]]
    grids[3] = None
    grids[4] = [[1.0, 2.0, 3.0], [4.0, None, 6.0]]
    open_ended = [[[i, i]] * i for i in range(6)]
    table = pa.table({"cube": pa.array(cubes, pa.list_(pa.list_(pa.list_(pa.uint8())))),
                      "grid": pa.array(grids, pa.list_(pa.list_(pa.float32()))),
                      "open": pa.array(open_ended, pa.list_(pa.list_(pa.int16()))),
                      "deep": pa.array([[[1]]] * 6, pa.list_(pa.list_(pa.int64())))})
    features = {"cube": {"shape": [3, 2, 2], "dtype": "uint8", "_type": "Array3D"},
                "grid": {"shape": [2, 3], "dtype": "float32", "_type": "Array2D"},
                "open": {"shape": [None, 2], "dtype": "int16", "_type": "Array2D"}}
    return table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


# Lists of texts and of bytes; row 2 is null.
lists = pa.table({
    "words": pa.array([["user", 'Say "hi"\n'], [], None, ["", None], ["größe" * 100]], pa.list_(pa.string())),
    "blobs": pa.array([[b"\xff\xd8\xff"], [b"", None], None, [], [b"ab", bytes(100)]], pa.large_list(pa.large_binary())),
    "pairs": pa.array([[f"{i}", f"b{i}"] if i != 2 else None for i in range(5)], pa.list_(pa.string(), 2)),
    "in": pa.array([{"names": [str(i)] * i} if i != 2 else None for i in range(5)], pa.struct([("names", pa.list_(pa.string()))])),
    "number": pa.array(range(5), pa.int64())})
for name, codec in [("", None), ("-zstd", "zstd")]:
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_file(f"tensors{name}.arrow", tensors().schema, options=options) as out:
        for first in [0, 4]:  # Slices, whose offsets begin anywhere.
            out.write_table(tensors().slice(first, 4 if first == 0 else 2))
    with pa.ipc.new_stream(f"lists{name}.arrow", lists.schema, options=options) as out:
        for first in [0, 3]:
            out.write_table(lists.slice(first, 3))

# Lists of one column in several widths: the number i of a list in row r is r * 3 - i.
for width in ["i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64"]:
    kind = {"i": {"16": pa.int16(), "32": pa.int32(), "64": pa.int64()}, "u": {"16": pa.uint16(), "32": pa.uint32(), "64": pa.uint64()},
            "f": {"32": pa.float32(), "64": pa.float64()}}[width[0]][width[1:]]
    sign = 0 if width[0] == "u" else 1
    of_width = pa.table({"ids": pa.array([[r * 3 - i * sign for i in range(r)] if r != 4 else None for r in range(6)], pa.list_(kind))})
    with pa.ipc.new_file(f"width-{width}.arrow", of_width.schema) as out:
        out.write_table(of_width)
    if width in ["i32", "i64"]:
        pq.write_table(of_width, f"../parquet/width-{width}.parquet")
