#!/usr/bin/env python3
"""Writes the Parquet files of tests/datasets/parquet_test.cpp: pip install pyarrow, then run it in this directory.

The value in a row is always known from the row's number, so that the test knows it:
  image    a struct of bytes, a JPEG's first bytes and the number as text so many times, and of the path; null in rows 5, 15, ...
  text     "text " and the number; null in rows 3, 10, 17, ...
  label    number % 3, by the Hub's metadata a class;  id  number * 1000003 - 500;  score  number / 4;  half  likewise
  species  "s" and number * 7 % 5;  flag  number % 3 == 0;  fixed  4 bytes, the number;  gaps  the number, null in odd rows
"""
import decimal
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
# Arrays of the Hub: lists in lists, of which its metadata tell the shape.
arrays = pa.table({
    "grid": pa.array([[[r * 6.0 + 0.5, r + 1.0, r + 2.0], [r + 3.0, r + 4.0, r + 5.0]] for r in range(5)],
                     pa.list_(pa.list_(pa.float32()))),
    "cube": pa.array([[[[r, 1], [2, 3]]] * 2 if r != 3 else None for r in range(5)],
                     pa.list_(pa.list_(pa.list_(pa.int64())))),
    "deep": pa.array([[[1]]] * 5, pa.list_(pa.list_(pa.int64())))})
hub_arrays = {"info": {"features": {"grid": {"shape": [2, 3], "dtype": "float32", "_type": "Array2D"},
                                    "cube": {"shape": [None, 2, 2], "dtype": "int64", "_type": "Array3D"}}}}
pq.write_table(arrays.replace_schema_metadata({"huggingface": json.dumps(hub_arrays)}), "hub-arrays.parquet",
               row_group_size=2)
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
talk = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
views = pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
pq.write_table(pa.table({
    "messages": pa.array([[{"role": "user", "content": 'Say "hi"\n'}, {"role": "assistant", "content": "größe €\\\t\x01\x1f/"}],
                          [], None, [{"role": "", "content": None}, {"role": None, "content": ""}, None],
                          [{"role": "system", "content": "x" * 3000}]], talk),
    "images": pa.array([[{"bytes": b"1", "path": "a.png"}], [], [], [{"bytes": b"2", "path": ""}, {"bytes": b"", "path": ""}],
                        [{"bytes": None, "path": None}]], views),
}), "lists-of-texts.parquet", row_group_size=3)
# Chats, as tests/loader/chat_test.cpp writes them to JSONL; and some that call tools, whose columns are no chats.
pq.write_table(pa.table({
    "id": [f"chat {i}" for i in range(40)],
    "messages": pa.array([[{"content": f"the others {i}", "name": "Ann", "role": "user"},
                           {"content": "and" + " words of 12345" * (i % 11), "name": None, "role": "assistant"}]
                          for i in range(40)],
                         pa.list_(pa.struct([("content", pa.string()), ("name", pa.string()), ("role", pa.string())]))),
}), "chats.parquet", row_group_size=16, compression="snappy")
pq.write_table(pa.table({
    "messages": pa.array([[{"role": "user", "content": "a", "tool_calls": ["b"]}]],
                         pa.list_(pa.struct([("role", pa.string()), ("content", pa.string()),
                                             ("tool_calls", pa.list_(pa.string()))]))),
}), "chats-with-calls.parquet")
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


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def written(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


# Thrift's compact protocol: a structure is a list of [field, type, value], a list is (type, values).
def read_thrift(data, at, kind):
    if kind in (1, 2):
        return None, at
    if kind == 3:
        return data[at], at + 1
    if kind in (4, 5, 6):
        return varint(data, at)
    if kind == 7:
        return data[at : at + 8], at + 8
    if kind == 8:
        size, at = varint(data, at)
        return data[at : at + size], at + size
    if kind == 9:
        head = data[at]
        size, at = (head >> 4, at + 1) if head >> 4 != 15 else varint(data, at + 1)
        values = []
        for _ in range(size):
            value, at = read_thrift(data, at, head & 15)
            values.append(value)
        return (head & 15, values), at
    fields, field = [], 0
    while data[at] != 0:
        head = data[at]
        at += 1
        assert head >> 4 != 0
        field += head >> 4
        value, at = read_thrift(data, at, head & 15)
        fields.append([field, head & 15, value])
    return fields, at + 1


def write_thrift(kind, value):
    if kind in (1, 2):
        return b""
    if kind == 3:
        return bytes([value])
    if kind in (4, 5, 6):
        return written(value)
    if kind == 7:
        return value
    if kind == 8:
        return written(len(value)) + value
    if kind == 9:
        head = bytes([len(value[1]) << 4 | value[0]]) if len(value[1]) < 15 else bytes([0xF0 | value[0]]) + written(len(value[1]))
        return head + b"".join(write_thrift(value[0], each) for each in value[1])
    out, last = b"", 0
    for field, inner, each in value:
        out += bytes([(field - last) << 4 | inner]) + write_thrift(inner, each)
        last = field
    return out + b"\0"


def rewrite(path, change):
    """Lets `change` edit the pages' bytes and the footer."""
    data = bytearray(open(path, "rb").read())
    size = int.from_bytes(data[-8:-4], "little")
    footer, _ = read_thrift(bytes(data[-8 - size : -8]), 0, 12)
    body = data[: -8 - size]
    change(body, footer)
    new = write_thrift(12, footer)
    open(path, "wb").write(bytes(body) + new + len(new).to_bytes(4, "little") + b"PAR1")


def field(structure, number):
    return next(each for each in structure if each[0] == number)[2]


def chunks(footer):
    for group in field(footer, 4)[1]:
        for chunk in field(group, 1)[1]:
            yield field(chunk, 3)


# Pages of version 2 that deny being compressed, as parquet-cpp wrote them.
def old_writer(body, footer):
    # The header's field 6, no repetition levels, and field 7.
    assert body.count(b"\x15\x00\x11") == 2
    body[:] = body.replace(b"\x15\x00\x11", b"\x15\x00\x12")
    next(each for each in footer if each[0] == 6)[2] = b"parquet-cpp version 1.5.1-SNAPSHOT"


table = pa.table({"x": pa.array(np.arange(1000) % 100, pa.int8()), "text": pa.array([f"text {i % 7}" for i in range(1000)])})
pq.write_table(table, "old-writer.parquet", data_page_version="2.0", compression="snappy", use_dictionary=False)
rewrite("old-writer.parquet", old_writer)

# Integers that are narrower than they are stored.
narrow = {"i8": pa.int8(), "u8": pa.uint8(), "i16": pa.int16(), "u16": pa.uint16(), "u32": pa.uint32()}
pq.write_table(pa.table({name: pa.array(np.arange(1, 9), kind) for name, kind in narrow.items()}), "narrow.parquet",
               compression="none", use_dictionary=False)

# Many rows, and a long list, of values that are all alike.
pq.write_table(pa.table({"label": pa.array(np.zeros(2_000_000, "i8")), "text": pa.array(["x"] * 2_000_000)}), "alike.parquet",
               row_group_size=2_000_000)
pq.write_table(pa.table({"list": pa.array([[0] * 5_000_000, [1]], pa.list_(pa.int8()))}), "long-list.parquet", compression="zstd",
               data_page_size=1 << 28)

# Page checksums: of values that lie in the file as they are, and of packed ones.
values = pa.table({"bare": pa.array([bytes([i]) * 400 for i in range(50)])})
pq.write_table(values, "checksums-bare.parquet", compression="none", use_dictionary=False, write_page_checksum=True,
               write_statistics=False)
pq.write_table(values, "checksums-packed.parquet", compression="snappy", use_dictionary=False, write_page_checksum=True,
               write_statistics=False)

# Odd columns among others: one without a name, values of a fixed size as differences of texts, and a dictionary that the footer does
# not name.
odd = pa.table({"text": pa.array([f"text {i % 5}" for i in range(40)]), "": pa.array(["?"] * 40),
                "fixed": pa.array([b"%04d" % (i * 3) for i in range(40)], pa.binary(4))})
pq.write_table(odd, "odd-columns.parquet", compression="none", use_dictionary=["text"],
               column_encoding={"fixed": "DELTA_BYTE_ARRAY", "": "PLAIN"})


def hide_dictionary(_, footer):
    text = next(chunks(footer))
    for each in text:
        if each[0] == 2:
            each[2] = (5, [0])
        if each[0] == 9:
            each[2] = field(text, 11)
    text[:] = [each for each in text if each[0] not in (8, 11, 13) and each[0] < 12]


rewrite("odd-columns.parquet", hide_dictionary)
pq.write_table(values.select([]), "no-columns.parquet")


def three_rows(_, footer):
    for each in footer:
        if each[0] == 3:
            each[2] = 2 * 3
        if each[0] == 4:
            each[2] = (12, [[[1, 9, (12, [])], [2, 6, 0], [3, 6, 2 * 3]]])


rewrite("no-columns.parquet", three_rows)


# Repeated columns that no list stands around, as protobuf's are written; by hand, since pyarrow has no words for them.
def levels(runs):
    runs = b"".join(written(count << 1) + bytes([level]) for count, level in runs)
    return len(runs).to_bytes(4, "little") + runs


def write_by_hand(path, schema, columns, rows):
    body, chunks = b"PAR1", []
    for kind, names, count, repetitions, definitions, values in columns:
        data = levels(repetitions) + levels(definitions) + values if repetitions else values
        page = [[1, 5, count * 2], [2, 5, 0], [3, 5, 6], [4, 5, 6]]
        head = write_thrift(12, [[1, 5, 0], [2, 5, len(data) * 2], [3, 5, len(data) * 2], [5, 12, page]])
        size = len(head) + len(data)
        chunk = [[1, 5, kind * 2], [2, 9, (5, [0])], [3, 9, (8, names)], [4, 5, 0], [5, 6, count * 2], [6, 6, size * 2],
                 [7, 6, size * 2], [9, 6, len(body) * 2]]
        chunks.append([[2, 6, len(body) * 2], [3, 12, chunk]])
        body += head + data
    group = [[1, 9, (12, chunks)], [2, 6, len(body) * 2], [3, 6, rows * 2]]
    footer = write_thrift(12, [[1, 5, 2], [2, 9, (12, schema)], [3, 6, rows * 2], [4, 9, (12, [group])], [6, 8, b"by hand"]])
    open(path, "wb").write(body + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def element(name, kind=None, repeats=0, children=None, text=False):
    fields = [[1, 5, kind * 2]] if kind is not None else []
    fields += [[3, 5, repeats * 2], [4, 8, name]]
    fields += [[5, 5, children * 2]] if children else []
    return fields + ([[6, 5, 0]] if text else [])


def texts(*values):
    return b"".join(len(each).to_bytes(4, "little") + each for each in values)


def integers(*values):
    return np.array(values, "<i4").tobytes()


INT, BYTES, OPTIONAL, REPEATED = 1, 6, 1, 2
two_none_one = [(1, 0), (1, 1), (2, 0)], [(2, 1), (1, 0), (1, 1)]  # rows of two, none and one
write_by_hand("repeated.parquet", [element(b"schema", children=4), element(b"numbers", INT, REPEATED),
                                   element(b"words", BYTES, REPEATED, text=True), element(b"phone", repeats=REPEATED, children=2),
                                   element(b"number", INT), element(b"kind", BYTES, OPTIONAL, text=True),
                                   element(b"plain", BYTES, text=True)],
              [(INT, [b"numbers"], 4, *two_none_one, integers(1, 2, 3)),
               (BYTES, [b"words"], 4, *two_none_one, texts(b"a", b"bb", b"c")),
               (INT, [b"phone", b"number"], 4, *two_none_one, integers(7, 8, 9)),
               (BYTES, [b"phone", b"kind"], 4, two_none_one[0], [(1, 2), (1, 1), (1, 0), (1, 2)], texts(b"x", b"y")),
               (BYTES, [b"plain"], 3, None, None, texts(b"p", b"qq", b"rrr"))], 3)

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
        "took": column([i * 1500 for i in range(6)], pa.duration("ms")),
        "rate": column([decimal.Decimal(i * 7 - 20).scaleb(-1) for i in range(6)], pa.decimal128(5, 1)),
        "price": column([decimal.Decimal(i * 99_999_999_999 - 10 ** 11).scaleb(-2) for i in range(6)], pa.decimal128(16, 2)),
        "long": column([decimal.Decimal((-1) ** i * (10 ** 36 // 3 + i)).scaleb(-10) for i in range(6)], pa.decimal128(38, 10)),
        "count": column([decimal.Decimal(i * 10 ** 15 - 10 ** 15) for i in range(6)], pa.decimal128(18, 0)),
        "days": column([[i, -i] for i in range(6)], pa.list_(pa.date32())),
    })


pq.write_table(times(), "times.parquet", compression="none", use_dictionary=False)
pq.write_table(times(), "times-zstd.parquet", compression="zstd", store_decimal_as_integer=True)
pq.write_table(times().select(["second", "nano"]), "times-96.parquet", use_deprecated_int96_timestamps=True)

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


pq.write_table(tensors(), "tensors.parquet", row_group_size=4)
