#!/usr/bin/env python3
"""Writes the HDF5 files of tests/datasets/hdf5_test.cpp: pip install h5py hdf5plugin, then run it in this directory.

The value of an element is always its number in C order (times 3, modulo what the type holds), so that the test knows it.
"""
import ctypes
import glob
import os
import struct

import h5py
import hdf5plugin
import numpy as np


def numbers(shape, dtype):
    count = int(np.prod(shape))
    values = np.arange(count, dtype=np.int64) * 3
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return (values % 2 == 1).reshape(shape)
    if kind.itemsize == 1:
        values %= 128
    elif kind.itemsize == 2:
        values %= 2048
    return values.astype(kind).reshape(shape)


def add(group, name, shape, dtype, **how):
    written = how.pop("rows", None)
    if written is None:
        return group.create_dataset(name, data=numbers(shape, dtype), **how)
    made = group.create_dataset(name, shape, dtype, **how)
    made[:written] = numbers(shape, dtype)[:written]
    return made


for libver in ("earliest", "latest"):
    with h5py.File(f"kinds-{libver}.h5", "w", libver=libver) as f:
        add(f, "contiguous", (20, 3, 4), "<f4")
        add(f, "never_written", (20, 5), "<i4", rows=0, fillvalue=7)
        add(f, "labels", (20,), "<i8")
        add(f, "gzip", (20, 6, 5), "<i2", chunks=(1, 6, 5), compression="gzip")
        add(f, "shuffled", (20, 7), "<f8", chunks=(6, 4), compression="gzip", shuffle=True, fletcher32=True)
        add(f, "checked", (20, 3), "<u2", chunks=(7, 3), fletcher32=True)
        add(f, "plain_chunks", (20, 9), "u1", chunks=(3, 9))
        add(f, "pieces", (20, 8, 8), ">f4", chunks=(4, 3, 8), compression="gzip", shuffle=True)
        add(f, "big_endian", (20, 2), ">i4")
        add(f, "half", (20, 4), "<f2")
        add(f, "flags", (20, 5), "?", chunks=(5, 5))
        add(f, "partly", (20, 4), "<i4", rows=9, chunks=(2, 4), compression="gzip", fillvalue=-5)
        inner = f.create_group("train").create_group("deep")
        add(inner, "images", (20, 2, 2), "u1", chunks=(20, 2, 2), compression="gzip")
        add(f, "other_length", (3, 2), "<i4")
        f.create_dataset("text", data=["a", "b"], dtype=h5py.string_dtype())
        f["soft"] = h5py.SoftLink("/gzip")
        f.create_dataset("compound", (20,), np.dtype([("a", "<i4"), ("b", "<f4")]))
    with h5py.File(f"indexes-{libver}.h5", "w", libver=libver) as f:
        gzip = {"compression": "gzip", "compression_opts": 1}
        add(f, "single", (12, 4), "<i4", chunks=(12, 4), **gzip)
        add(f, "single_plain", (12, 4), "<i4", chunks=(12, 4))
        add(f, "fixed", (300, 3), "<i4", chunks=(2, 3), **gzip)
        add(f, "growing", (300, 3), "<i4", chunks=(2, 3), maxshape=(None, 3), **gzip)
        add(f, "growing_second", (40, 30), "<i4", chunks=(4, 2), maxshape=(60, None))
        add(f, "growing_both", (60, 20), "<i4", chunks=(3, 4), maxshape=(None, None), **gzip)
        if libver == "latest":  # pages of an array, and its secondary blocks
            add(f, "fixed_pages", (2600, 2), "<i2", chunks=(1, 2))
            add(f, "growing_far", (1500, 2), "<i2", chunks=(1, 2), maxshape=(None, 2))
            add(f, "growing_farther", (5000, 1, 2), "<i2", chunks=(1, 1, 2), maxshape=(None, 1, 2), rows=4700)
    with h5py.File(f"many-{libver}.h5", "w", libver=libver) as f:
        for i in range(40):
            add(f, f"field_{i:02}", (4, 2), "u1")

# A name for each sample: groups, as robot learning has them, and files.
with h5py.File("samples.h5", "w", libver="latest") as f:
    for i in range(11):
        demo = f.create_group(f"demos/demo_{i}")
        demo["obs/image"] = np.full((2, 3), i, "u1")
        demo["label"] = np.int32(i * 7)
        demo["task"] = f"task {i}"
        demo["path"] = np.arange(2 * (i + 1), dtype="f4").reshape(i + 1, 2)
    f["demos/demo_3/note"] = np.int32(1)
with h5py.File("files.h5", "w", libver="latest") as f:
    for i in range(12):
        f[f"images/{i}.jpg"] = np.frombuffer(b"\xff\xd8\xff" + bytes([i] * (20 + i)), "u1")
        f[f"opaque/{i}.jpg"] = np.void(b"\xff\xd8\xff" + bytes([i + 100] * (30 + i)))
    f["labels"] = np.arange(12)[::-1].copy()

# Labels in attributes: of datasets that are samples, and of groups that are.
for libver in ("earliest", "latest"):
    with h5py.File(f"attributes-{libver}.h5", "w", libver=libver) as f:
        for i in range(40):
            x = f.create_dataset(f"images/img_{i}", data=np.full((2, 3, 3), i, "u1"))
            x.attrs["label"] = np.int32(i * 5)
            x.attrs["score"] = np.array([i / 4], ">f4")
            x.attrs["kind"] = f"kind {i % 3}"
            x.attrs["fixed"] = np.bytes_(f"f{i % 2}")
            x.attrs["good"] = i % 2 == 0
            x.attrs["box"] = np.arange(4)
            for k in range(12 if i % 2 else 0):
                x.attrs[f"more {k}"] = k  # So many are kept in a heap by newer files.
            if i != 33:
                x.attrs["some"] = i
        f["images/img_7"].attrs["mixed"] = "text"
        for i in range(40):
            if i != 7:
                f[f"images/img_{i}"].attrs["mixed"] = i
    with h5py.File(f"group-attributes-{libver}.h5", "w", libver=libver) as f:
        for i in range(6):
            sample = f.create_group(f"sample_{i}")
            sample.attrs["label"] = i + 100
            sample["image"] = np.full((2, 2), i, "u1")
            sample["mask"] = np.full((2, 2), i + 50, "u1")
            sample["image"].attrs["lens"] = f"lens {5 - i}"
            sample["image"].attrs["both"] = i
            sample["mask"].attrs["both"] = i + 10

# An object header that goes on in another block.
with h5py.File("continued-latest.h5", "w", libver="latest") as f:
    x = add(f, "x", (5, 2), "<i4")
    add(f, "y", (5, 2), "<i4")
    for i in range(4):
        x.attrs[f"attribute {i}"] = np.bytes_("v" * 100)

# What other people's files have: a second hard link, single elements that have axes, a compound of which no member is read, and a
# committed datatype.
with h5py.File("others.h5", "w", libver="earliest") as f:
    add(f, "z/first", (4, 2), "<i4")
    f["a_group"] = f["z"]
    f["a"] = f["z/first"]
    f.create_dataset("one_text", data=np.bytes_("text"))
    f.create_dataset("one_array", (), np.dtype(("<i2", (4,))))
    f.create_dataset("one_record", (), np.dtype([("x", "<i4", (4,))]))
    f.create_dataset("big_records", (4,), np.dtype([("x", ">i4"), ("y", ">i4")]))
    f["type"] = np.dtype("<i4")
    f.create_dataset("committed", (4, 2), f["type"], data=np.arange(8).reshape(4, 2) * 3)
    header, type_header = (h5py.h5o.get_info(f[name].id).addr for name in ("committed", "type"))
# The reference to the type in its first version, which no library writes any more: 8 bytes more, taken from the padding behind.
with open("others.h5", "r+b") as f:
    f.seek(header + 8)
    size = int.from_bytes(f.read(4), "little")
    f.seek(header + 16)
    old, new, at = f.read(size), b"", 0
    while at < size:
        kind, bytes_ = struct.unpack_from("<HH", old, at)
        message = old[at : at + 8 + bytes_]
        at += 8 + bytes_
        if kind == 3:
            assert bytes_ == 16 and old[at - 16] == 2, "a reference of the second version"
            message = message[:2] + struct.pack("<H", 24) + message[4:8] + struct.pack("<B7xQQ", 1, 17, type_header)
        if kind == 0:
            message = message[:2] + struct.pack("<H", bytes_ - 8) + message[4:-8]
        new += message
    assert len(new) == size, "one message of padding"
    f.seek(header + 16)
    f.write(new)

# Messages that the file keeps once for several objects, in two heaps, of which the first has short ones in the ids themselves. h5py
# has no words for that; the library that it brings has.
made = h5py.h5p.create(h5py.h5p.FILE_CREATE)
library = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(h5py.__file__), "..", "h5py.libs", "libhdf5-*"))[0])
assert library.H5Pset_shared_mesg_nindexes(ctypes.c_int64(made.id), 2) == 0
for index, types in ((0, 1 << 1 | 1 << 11), (1, 1 << 3 | 1 << 5)):  # bits: of each type of message
    assert library.H5Pset_shared_mesg_index(ctypes.c_int64(made.id), index, types, 1) == 0
access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
access.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
with h5py.File(h5py.h5f.create(b"shared.h5", h5py.h5f.ACC_TRUNC, made, access)) as f:
    for name in ("a", "b", "c"):
        add(f, name, (8, 5), "<i4", rows=6, chunks=(2, 5), compression="gzip", fillvalue=7)
    add(f, "d", (8, 3), ">f8")
    f["number"] = 5  # whose shape takes four bytes

with h5py.File("links.h5", "w", libver="latest") as f:
    add(f, "own", (20, 2), "<i4")
    f["other"] = h5py.ExternalLink("kinds-latest.h5", "/gzip")
    f["group"] = h5py.ExternalLink("kinds-earliest.h5", "train")
    f["member"] = h5py.ExternalLink("compounds.h5", "/records")
    f["soft"] = h5py.SoftLink("/group/deep/images")
    f["far"] = h5py.ExternalLink("kinds-latest.h5", "/soft")
    f["missing"] = h5py.ExternalLink("gone.h5", "/x")
    f["nothing"] = h5py.ExternalLink("kinds-latest.h5", "/nothing")
    f["circle"] = h5py.ExternalLink("links.h5", "/circle")

with h5py.File("user-block.h5", "w", userblock_size=1024) as f:
    add(f, "x", (5, 2), "<i4", chunks=(2, 2), compression="gzip")

with h5py.File("filters.h5", "w", libver="latest") as f:
    how = {
        "lzf": {"compression": "lzf"},
        "lzf_shuffled": {"compression": "lzf", "shuffle": True},
        "zstd": hdf5plugin.Zstd(clevel=3),
        "lz4": hdf5plugin.LZ4(nbytes=64),
        "lz4_one_block": hdf5plugin.LZ4(),
        "blosc_lz4": hdf5plugin.Blosc(cname="lz4", shuffle=hdf5plugin.Blosc.SHUFFLE),
        "blosc_zstd": hdf5plugin.Blosc(cname="zstd", shuffle=hdf5plugin.Blosc.BITSHUFFLE),
        "blosclz": hdf5plugin.Blosc(cname="blosclz", shuffle=hdf5plugin.Blosc.NOSHUFFLE),
        "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
        "bitshuffle_lz4": hdf5plugin.Bitshuffle(cname="lz4"),
        "bitshuffle_blocks": hdf5plugin.Bitshuffle(nelems=64, cname="lz4"),
    }
    for name, filters in how.items():
        add(f, name, (12, 37), "<i4", chunks=(5, 37), **filters)
    add(f, "bitshuffle_wide", (12, 301), "<f8", chunks=(6, 301), **hdf5plugin.Bitshuffle(cname="lz4"))
    f.create_dataset("bitshuffle_zstd", data=numbers((12, 3), "<i4"), chunks=(6, 3), **hdf5plugin.Bitshuffle(cname="zstd"))
    f.create_dataset("blosc2", data=numbers((12, 3), "<i4"), chunks=(6, 3), **hdf5plugin.Blosc2())

# Files of today's library that leat refuses by name.
with h5py.File("refused.h5", "w", libver="latest") as f:
    add(f, "fine", (6, 2), "<i4")
    f.create_dataset("scaled", data=numbers((6, 2), "<i4"), chunks=(2, 2), scaleoffset=4)
    layout = h5py.VirtualLayout((6, 2), "<i4")
    layout[:] = h5py.VirtualSource("other.h5", "x", (6, 2))
    f.create_virtual_dataset("virtual", layout)
    f.create_dataset("external", (6, 2), "<i4", external=[("other.bin", 0, 48)])

# Filters that leat refuses by name: HDF5's own, and two of hdf5plugin's, whose names the file has.
with h5py.File("refused-filters.h5", "w") as f:
    add(f, "fine", (6, 2), "<i4")
    f.create_dataset("szip", data=numbers((6, 16), "<i4"), chunks=(2, 16), compression="szip")
    f.create_dataset("bzip2", data=numbers((6, 2), "<i4"), chunks=(2, 2), **hdf5plugin.BZip2())
    f.create_dataset("zfp", data=numbers((6, 4), "<f4"), chunks=(2, 4), **hdf5plugin.Zfp())
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_chunk((2, 2))
    how.set_filter(5, 0)  # n-bit
    h5py.h5d.create(f.id, b"nbit", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((6, 2)), how)

# Two lengths that are as common: of coordinates, and of what they are the coordinates of.
with h5py.File("ties.h5", "w") as f:
    f["lat"] = np.arange(3, dtype="<f4")
    f["t2m"] = np.arange(5 * 3 * 2, dtype="<f4").reshape(5, 3, 2)

# A chunk that would take 512 MiB to find three values.
with h5py.File("large-chunks.h5", "w", libver="latest") as f:
    f.create_dataset("x", (3,), h5py.vlen_dtype(np.uint8), chunks=(1 << 25,), maxshape=(None,), compression="gzip")

# One that its writer never closed.
with h5py.File("open.h5", "w", libver="latest") as f:
    add(f, "x", (5, 2), "<i4")
    f.flush()
    data = open("open.h5", "rb").read()
open("open.h5", "wb").write(data)

for name in sorted(os.listdir(".")):
    if name.endswith(".h5"):
        print(name, os.path.getsize(name))

# Each sample is a group, or an array: element e of sample i is i * 100 + e.
with h5py.File("groups.h5", "w", libver="latest") as f:
    for i in range(11):
        group = f.create_group(f"sample_{i:02}")
        group.create_dataset("image", data=np.arange(12, dtype="<i4").reshape(3, 4) + i * 100, chunks=(3, 2), compression="gzip")
        group.create_dataset("plain", data=np.arange(5, dtype="<i2") + i * 100)
        group["label"] = np.int64(i * 7)
        f[f"flat/a{i:02}"] = np.arange(6, dtype="<i4") + i * 100
    f["flat/other"] = np.arange(7, dtype="<i4")
    f["times"] = np.arange(9, dtype="<f8") * 0.5
    f["steps"] = np.arange(9, dtype="<i4") * 3
    f["series"] = numbers((9, 2, 5), "<i4")
    f.create_dataset("series_packed", data=numbers((9, 2, 5), "<i4"), chunks=(2, 2, 3), compression="gzip")

# Elements that are no plain numbers.
point = np.dtype([("x", "<f4"), ("id", "<i8"), ("box", "<u2", (2, 2)), ("big", ">i4"), ("tag", "S3"),
                  ("inner", [("a", "u1"), ("b", "<i2")])], align=True)
points = np.zeros(13, point)
for i in range(13):
    points[i] = (i / 2, i * 11, [[i, i + 1], [i + 2, i + 3]], i, b"t%d" % (i % 10), (i % 250, -i))
words = ["", "leaf", "\u00e4\u00f6\u00fc", "x" * 5000] + [f"word {i}" for i in range(9)]
for libver in ("earliest", "latest"):
    with h5py.File(f"elements-{libver}.h5", "w", libver=libver) as f:
        f["points"] = points
        f.create_dataset("points_packed", data=points, chunks=(5,), compression="gzip", shuffle=True)
        f.create_dataset("arrays", (13,), np.dtype(("<i2", (2, 2))))[...] = np.arange(52, dtype="<i2").reshape(13, 2, 2)
        f["names"] = np.array([b"n%02d" % i for i in range(13)], "S5")
        if libver == "latest":
            f.create_dataset("big", data=numbers((13, 2000), ">i4"))
        f.create_dataset("words", data=words, dtype=h5py.string_dtype())
        blobs = f.create_dataset("blobs", (13,), h5py.vlen_dtype(np.uint8), chunks=(4,), compression="gzip")
        for i in range(13):
            blobs[i] = np.arange(i * i, dtype=np.uint8)
        f.create_dataset("rows_of_floats", (13,), h5py.vlen_dtype(np.float32))
        f.create_dataset("opaque", data=np.array([bytes([i, i + 1, i + 2, i + 3]) for i in range(13)], "V4"))

# Members of compounds in chunks, big-endian ones among them, and a compound of which no member is read. Chunks that were never
# written, with fill values of two files.
with h5py.File("compounds.h5", "w", libver="latest") as f:
    records = np.zeros(30, [("x", ">f4", (3,)), ("y", ">i2"), ("image", "u1", (4, 4)), ("big", ">u8", (2,)), ("z", "<i8")])
    records["x"] = np.arange(90).reshape(30, 3) / 2
    records["y"] = np.arange(30) - 300
    records["image"] = (np.arange(480) % 251).reshape(30, 4, 4)
    records["big"] = np.arange(60).reshape(30, 2) + (1 << 40)
    records["z"] = -np.arange(30)
    f.create_dataset("records", data=records, chunks=(7,), compression="gzip")
    f.create_dataset("whole", data=records)
    f.create_dataset("only", data=np.array(np.arange(30) * 1000, [("n", ">i4")]), chunks=(7,))
    f.create_dataset("texts", (30,), np.dtype([("t", h5py.string_dtype())]))
for fill in 5, 6:
    with h5py.File(f"fill-{fill}.h5", "w", libver="latest") as f:
        x = f.create_dataset("x", (4, 3), "<i4", chunks=(2, 3), compression="gzip", fillvalue=fill)
        x[:2] = 1

# Bitshuffle in blocks of sizes of its own.
with h5py.File("bitshuffle.h5", "w", libver="latest") as f:
    for block in 8, 64, 512, 4096:
        for cname in "none", "lz4":
            add(f, f"{cname}_{block}", (40, 30), "<i2", chunks=(20, 30), **hdf5plugin.Bitshuffle(nelems=block, cname=cname))

# Two million chunks, one of which was written.
with h5py.File("sparse.h5", "w") as f:
    f.create_dataset("x", (2_000_000, 4), "<f4", chunks=(1, 4), fillvalue=5)[7] = 1

# Elements that are texts and arrays, the second half of which was never written. h5py has no words for an array as a fill value.
with h5py.File("fill-elements.h5", "w", libver="latest") as f:
    f.create_dataset("text", (8, 2), "S3", chunks=(4, 2), fillvalue=b"abc")[:4] = b"xyz"
    f.create_dataset("alike", (8,), "S3", chunks=(4,), fillvalue=b"aaa")[:4] = b"xyz"
    f.create_dataset("unwritten", (8,), "S3", fillvalue=b"abc")
    f.create_dataset("written", (8,), "S3", fillvalue=b"abc")[...] = b"xyz"
    for name, kind in ("little_endian", "<i2"), ("big_endian", ">i2"):
        element = h5py.h5t.py_create(np.dtype((kind, (2,))))
        fill = np.array([258, 3], kind)
        how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        how.set_chunk((4,))
        how.set_deflate(4)
        assert library.H5Pset_fill_value(ctypes.c_int64(how.id), ctypes.c_int64(element.id), ctypes.c_void_p(fill.ctypes.data)) == 0
        h5py.h5d.create(f.id, name.encode(), element, h5py.h5s.create_simple((8,)), how)
        f[name][:4] = np.arange(8).reshape(4, 2)
