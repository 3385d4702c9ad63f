#!/usr/bin/env python3
"""Writes the same rows in every form, for tests/loader/same_rows_test.cpp. Run it in this directory, with each of

    pip install h5py hdf5plugin tables 'zarr>=3' numpy     then  make.py
    pip install 'zarr<3' 'numcodecs<0.16' numpy            then  make.py old

Of the rows those from 12 to 19 are -7, and in arrays whose names end with "_fill" that is because they were never written.
"""
import shutil
import sys

import numpy as np

rows = (np.arange(26 * 7 * 5, dtype="<i4") * 3 % 1000).reshape(26, 7, 5)
rows[12:20] = -7
# Some divide no axis; rows are whole or not, several in a chunk or one.
chunks = {"whole": (4, 7, 5), "uneven": (4, 3, 2), "one": (1, 7, 5)}


def fill(array, has_fill):
    array[:12] = rows[:12]
    if not has_fill:
        array[12:20] = rows[12:20]
    array[20:] = rows[20:]


def hdf5():
    import h5py
    import hdf5plugin

    filters = {
        "none": {},
        "gzip": {"compression": "gzip"},
        "gzip_shuffle": {"compression": "gzip", "shuffle": True},
        "gzip_checked": {"compression": "gzip", "fletcher32": True},
        "lzf": {"compression": "lzf"},
        "lz4": hdf5plugin.LZ4(),
        "zstd": hdf5plugin.Zstd(),
        "blosc": hdf5plugin.Blosc(cname="lz4"),
        "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
        "bitshuffle_lz4": hdf5plugin.Bitshuffle(cname="lz4"),
    }
    for libver in ("earliest", "latest"):
        with h5py.File(f"{libver}.h5", "w", libver=libver) as f:
            f["contiguous"] = rows
            for name, how in filters.items():
                for shape in ("whole", "uneven") if name in ("gzip", "none") else ("whole",):
                    fill(f.create_dataset(f"{name}_{shape}", rows.shape, "<i4", chunks=chunks[shape], **how), False)
            for shape in chunks:
                made = f.create_dataset(f"gzip_{shape}_fill", rows.shape, "<i4", chunks=chunks[shape], compression="gzip", fillvalue=-7)
                fill(made, True)


def pytables():
    import tables

    with tables.open_file("pytables.h5", "w") as f:
        f.create_array("/", "array", obj=rows)
        f.create_carray("/", "carray", obj=rows, chunkshape=chunks["uneven"], filters=tables.Filters(5, "blosc:zstd", fletcher32=True))
        for name, library in (("zlib", "zlib"), ("blosc", "blosc")):
            made = f.create_earray("/", f"earray_{name}", tables.Int32Atom(), (0, 7, 5), chunkshape=chunks["whole"], filters=tables.Filters(5, library))
            made.append(rows)
        table = f.create_table("/", "table", {"x": tables.Int32Col(shape=(7, 5)), "n": tables.Float32Col()}, filters=tables.Filters(5, "zlib"))
        for each in rows:
            table.row["x"] = each
            table.row.append()


def zarr_of(folder, version):
    import zarr

    shutil.rmtree(folder, ignore_errors=True)
    group = zarr.open_group(folder, mode="w", zarr_format=version)
    shapes = {"whole_fill": chunks["whole"], "uneven": chunks["uneven"]}
    for name, shape in shapes.items():
        fill(group.create_array(name, shape=rows.shape, chunks=shape, dtype="<i4", fill_value=-7), name.endswith("_fill"))
    if version == 3:
        made = group.create_array("sharded_fill", shape=rows.shape, chunks=chunks["one"], shards=(13, 7, 5), dtype="<i4", fill_value=-7)
        fill(made, True)


def zarr_by_version_2():
    import numcodecs
    import zarr

    shutil.rmtree("old.zarr", ignore_errors=True)
    group = zarr.open_group("old.zarr", mode="w")
    codecs = {"whole_fill": numcodecs.Blosc(cname="lz4"), "gzip_whole": numcodecs.GZip(), "lz4_whole": numcodecs.LZ4()}
    for name, codec in codecs.items():
        made = group.create_dataset(name, shape=rows.shape, chunks=chunks["whole"], dtype="<i4", compressor=codec, fill_value=-7)
        fill(made, name.endswith("_fill"))
    made = group.create_dataset("fortran_uneven", shape=rows.shape, chunks=(13, 3, 5), dtype=">i4", compressor=numcodecs.Zstd(), order="F", fill_value=0)
    fill(made, False)


if sys.argv[1:] == ["old"]:
    zarr_by_version_2()
else:
    np.save("rows.npy", rows)
    hdf5()
    pytables()
    zarr_of("v2.zarr", 2)
    zarr_of("v3.zarr", 3)
