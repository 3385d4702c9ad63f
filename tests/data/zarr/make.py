#!/usr/bin/env python3
"""Writes the Zarr hierarchies of tests/datasets/zarr_test.cpp: pip install zarr kerchunk h5py, then run it in this directory.

The value of an element is always its number in C order (times 3, modulo what the type holds), so that the test knows it.
"""
import json
import os
import shutil

import numcodecs
import numpy as np
import zarr
from kerchunk.hdf import SingleHdf5ToZarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec


def numbers(shape, dtype):
    values = np.arange(int(np.prod(shape)), dtype=np.int64) * 3
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return (values % 2 == 1).reshape(shape)
    if kind.itemsize == 1:
        values %= 128
    elif kind.itemsize == 2:
        values %= 2048
    return values.astype(kind).reshape(shape)


def add(group, name, shape, dtype, rows=None, **how):
    made = group.create_array(name, shape=shape, dtype=dtype, **how)
    if rows is None:
        made[:] = numbers(shape, dtype)
    else:
        made[:rows] = numbers(shape, dtype)[:rows]
    return made


shutil.rmtree("v2.zarr", ignore_errors=True)
g = zarr.open_group("v2.zarr", mode="w", zarr_format=2)
add(g, "plain", (10, 6), "<i4", chunks=(4, 6), compressors=None)
add(g, "zlib", (10, 6), "<i2", chunks=(5, 4), compressors=numcodecs.Zlib())
add(g, "gzip", (10, 3), "<u2", chunks=(5, 3), compressors=numcodecs.GZip())
add(g, "zstd", (10, 3), "<f8", chunks=(10, 3), compressors=numcodecs.Zstd())
add(g, "lz4", (10, 3), "<f4", chunks=(10, 3), compressors=numcodecs.LZ4())
add(g, "blosc", (10, 4, 4), "<f4", chunks=(4, 3, 4), compressors=numcodecs.Blosc())
add(g, "filtered", (10, 5), "<i4", chunks=(5, 5), filters=[numcodecs.Shuffle(4)], compressors=numcodecs.Zlib())
add(g, "big_endian", (10, 2), ">i4", chunks=(10, 2), compressors=None)
add(g, "partly", (10, 2), "<i4", rows=4, chunks=(4, 2), fill_value=-7)
add(g, "flags", (10, 2), "?", chunks=(10, 2))
add(g, "labels", (10,), "<i8", chunks=(4,))
add(g, "slashes", (10, 2), "<i4", chunks=(5, 2), chunk_key_encoding={"name": "v2", "separator": "/"})
add(g, "fortran", (10, 2), "<i4", chunks=(10, 2), order="F")
add(g, "fortran_boxes", (10, 3, 4), "<i2", chunks=(4, 2, 4), order="F", compressors=numcodecs.Zlib())
add(g, "delta", (10, 2), "<i4", chunks=(10, 2), filters=[numcodecs.Delta("<i4")])
add(g, "deep/er/images", (10, 2, 2), "u1", chunks=(5, 2, 2))
add(g, "other_length", (3, 2), "<i4", chunks=(3, 2))

shutil.rmtree("v3.zarr", ignore_errors=True)
g = zarr.open_group("v3.zarr", mode="w", zarr_format=3)
add(g, "plain", (10, 6), "<i4", chunks=(4, 6), compressors=None)
add(g, "zstd", (10, 6), "<i4", chunks=(4, 4), compressors=ZstdCodec())
add(g, "gzip_checked", (10, 6), "<i4", chunks=(10, 6), compressors=[GzipCodec(), Crc32cCodec()])
add(g, "blosc", (10, 6), "<f8", chunks=(10, 6), compressors=BloscCodec(cname="zstd", shuffle="shuffle"))
add(g, "sharded", (10, 6), "<i4", chunks=(2, 3), shards=(4, 6), compressors=ZstdCodec())
add(g, "sharded_partly", (10, 6), "<f4", rows=5, chunks=(2, 3), shards=(4, 6), fill_value=float("nan"))
add(g, "sharded_at_start", (10, 4), "<i2", chunks=(1, 4), shards={"shape": (5, 4), "index_location": "start"}, compressors=None)
turned = {"filters": TransposeCodec(order=(2, 0, 1)), "compressors": ZstdCodec()}
add(g, "transposed", (10, 3, 4), "<i2", chunks=(4, 3, 2), **turned)
add(g, "transposed_in_shards", (10, 3, 4), "<i2", chunks=(2, 3, 2), shards=(4, 3, 4), **turned)
add(g, "half", (10, 2), "<f2", chunks=(10, 2))
add(g, "labels", (10,), "<i4", chunks=(4,))
add(g, "deep/er/images", (10, 2, 2), "u1", chunks=(5, 2, 2))

shutil.rmtree("array.zarr", ignore_errors=True)
a = zarr.create_array("array.zarr", shape=(6, 2), chunks=(2, 2), dtype="<i4", zarr_format=3)
a[:] = numbers((6, 2), "<i4")

# References to the chunks of ../hdf5/filters.h5 whose filters kerchunk knows; small chunks lie in the JSON.
made = SingleHdf5ToZarr("../hdf5/filters.h5", inline_threshold=200, error="ignore").translate()
for value in made["refs"].values():
    if isinstance(value, list):
        value[0] = "../hdf5/filters.h5"
with open("kerchunk.json", "w") as file:
    json.dump(made, file, indent=1)

# Metadata in one file only, so that a reader that finds the arrays has looked there.
for version in 2, 3:
    folder = f"consolidated-{version}.zarr"
    shutil.rmtree(folder, ignore_errors=True)
    g = zarr.open_group(folder, mode="w", zarr_format=version)
    add(g, "x", (10, 6), "<i4", chunks=(4, 6), compressors=None)
    add(g, "deep/y", (10, 2), "u1", chunks=(10, 2), compressors=None)
    zarr.consolidate_metadata(folder)
    for path in "x", "deep/y":
        os.remove(f"{folder}/{path}/" + (".zarray" if version == 2 else "zarr.json"))
