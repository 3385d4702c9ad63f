"""references.py LEAT FOLDER: has the program LEAT write references to every array of every HDF5 file and Zarr folder below FOLDER, opens
them with xarray, and compares the values with those that h5py or zarr-python reads from the source itself.

Prints how many arrays are the same, how many LEAT wrote no references to, saying why, and each that differs, and exits 1 where one does.
"""

import collections
import pathlib
import subprocess
import sys
import tempfile
import warnings

import h5py
import hdf5plugin  # noqa: F401  registers filters
import numpy
import xarray
import zarr
from compare import sources_below
from fsspec.implementations.reference import ReferenceFileSystem


def arrays_of(source, is_zarr):
    """Names and values, as the source's own library reads them."""
    if is_zarr:
        root = zarr.open(source, mode="r")
        if isinstance(root, zarr.Array):
            return {pathlib.Path(source).stem: root[...]}
        return {name: each[...] for name, each in root.members(max_depth=None) if isinstance(each, zarr.Array)}
    found = {}

    def take(name, node):
        try:
            if isinstance(node, h5py.Dataset):
                found[name] = node[...]
        except (OSError, TypeError):
            pass  # h5py does not read it either

    try:
        with h5py.File(source) as file:
            file.visititems(take)
    except OSError:
        pass  # open for writing
    return found


def read_by_xarray(references, name):
    store = zarr.storage.FsspecStore(ReferenceFileSystem(references, asynchronous=True), read_only=True, path="")
    group, _, own = name.rpartition("/")
    opened = xarray.open_zarr(store, group=group or None, zarr_format=2, chunks=None, mask_and_scale=False, decode_times=False)
    return opened[own].values


def same(values, expected):
    if expected.dtype.kind in "SV" and values.dtype == numpy.uint8:  # texts and opaque bytes are u8 with an axis of their own
        expected = numpy.ascontiguousarray(expected).view(numpy.uint8).reshape(values.shape)
    return numpy.array_equal(values, expected, equal_nan=expected.dtype.kind == "f")


def main():
    leat, folder = sys.argv[1:]
    warnings.simplefilter("ignore")
    counts = collections.Counter()
    for source, is_zarr in sources_below(folder):
        for name, expected in arrays_of(source, is_zarr).items():
            with tempfile.TemporaryDirectory() as scratch:
                out = f"{scratch}/references.json"
                said = subprocess.run([leat, "inspect", source, "--fields", name, "--references", out], capture_output=True, text=True)
                if said.returncode != 0:
                    counts["refused" if name in said.stderr else "fault"] += 1
                    if name not in said.stderr:
                        print(f"FAULT: {source}: {name}: {said.stderr.strip()}")
                    continue
                try:
                    outcome = "same" if same(read_by_xarray(out, name), expected) else "differs"
                except Exception as error:  # whatever xarray throws
                    outcome = f"{type(error).__name__}: {error}"
                counts["same" if outcome == "same" else "fault"] += 1
                if outcome != "same":
                    print(f"FAULT: {source}: {name}: {outcome}")
    print(f"by references and xarray: {counts['same']} arrays are the same, {counts['refused']} refused by name, {counts['fault']} faults")
    return 1 if counts["fault"] or not counts["same"] else 0


if __name__ == "__main__":
    sys.exit(main())
