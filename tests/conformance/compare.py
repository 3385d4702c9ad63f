"""compare.py ARRAY_BYTES FILES OWN: reads every array of every HDF5 file and Zarr folder below FILES and OWN with h5py or
zarr-python and with leat (by the program ARRAY_BYTES), and compares the bytes.

Prints for each folder of FILES:

    same       every byte
    refused    leat said which array it does not read, and why
    peer       h5py or zarr-python does not read it, so there is nothing to compare with; leat did not crash
    faults     other bytes, a crash, an array that leat does not know of, or an error that does not name it: each is named

and exits 1 where there are faults.
"""

import collections
import concurrent.futures
import os
import pathlib
import signal
import struct
import subprocess
import sys
import warnings
import zipfile

import h5py
import hdf5plugin  # noqa: F401  registers filters
import numpy
import zarr

SECONDS = 120
SIGNATURE = b"\x89HDF\r\n\x1a\n"
BYTES_MAX = 256 << 20  # arrays of more are not counted: HDF5's tests have some that were declared and never written


def is_hdf5(path):
    # The signature is at 0 or, behind a user block, at 512, 1024, 2048, ...
    with open(path, "rb") as file:
        at = 0
        while True:
            file.seek(at)
            read = file.read(8)
            if read == SIGNATURE:
                return True
            if len(read) < 8:
                return False
            at = max(512, at * 2)


def little_endian(values):
    return numpy.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"), copy=False)).tobytes()


class Rows:
    """The bytes of each row of what h5py or zarr-python gave: an array of numbers, or of values of variable length."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        if self.values.dtype != object:
            return little_endian(self.values[i : i + 1])  # an element by itself would be bytes without the padding
        row = self.values[i]
        if isinstance(row, str):
            return row.encode("utf-8", "surrogateescape")
        return bytes(row) if isinstance(row, bytes) else little_endian(numpy.asarray(row))


def members_of(name, values):
    """Name and values of each member of a compound, of others of the array itself."""
    if values.dtype.kind == "c":  # for h5py, a compound of r and i
        yield f"{name}/r", values.real
        yield f"{name}/i", values.imag
        return
    if values.dtype.names is None:
        yield name, values
        return
    for member in values.dtype.names:
        yield from members_of(f"{name}/{member}", values[member])


def fields_of(output):
    """Notes, and (kind, type, rows as bytes) by name."""
    notes, fields, at = [], {}, 0
    while at < len(output):
        end = output.index(b"\n", at)
        word, _, rest = output[at:end].partition(b" ")
        at = end + 1
        if word == b"note":
            notes.append(rest.decode("utf-8", "surrogateescape"))
            continue
        kind, dtype, count, shape, name = rest.decode("utf-8", "surrogateescape").split(" ", 4)
        rows = []
        for _ in range(int(count)):
            size = 8
            if kind != "column":
                size = struct.unpack_from("<Q", output, at)[0]
                at += 8
            rows.append(output[at : at + size])
            at += size
        fields[name] = (kind, dtype, shape, rows)
    return notes, fields


def difference(kind, rows, values):
    """What is not the same, or None."""
    expected = Rows(values)
    if len(rows) != len(expected):
        return f"{len(rows)} rows, not {len(expected)}"
    for i, row in enumerate(rows):
        if kind == "column":
            if struct.unpack("<q", row)[0] != int(expected.values[i]):
                return f"row {i} is {struct.unpack('<q', row)[0]}, not {expected.values[i]}"
        elif row != expected[i] and (values.dtype.kind != "S" or terminated(row, values) != terminated(expected[i], values)):
            return f"row {i} is {row[:16].hex()} of {len(row)} bytes, not {expected[i][:16].hex()} of {len(expected[i])}"
    return None


def terminated(row, values):
    """Texts of a row without what follows their terminator, and without the spaces that fill them up: h5py clears both, leat leaves them."""
    size = values.dtype.itemsize
    return [row[at : at + size].split(b"\0", 1)[0].rstrip(b" ") for at in range(0, len(row), size)]


def is_mentioned(member, name, notes):
    """Whether a note names the member, or a compound that it lies in."""
    while len(member) >= len(name):
        if any(f"/{member}" in note for note in notes):
            return True
        member = member.rpartition("/")[0]
    return False


def last_part(name):
    return name.rsplit("/", 1)[-1]


def compare(program, path, name, read):
    """Outcome and what there is to say of it. `read` gives the peer's values, or throws."""
    try:
        run = subprocess.run([program, path, os.fsencode(name)], capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "fault", f"not finished after {SECONDS} s"
    message = run.stderr.decode("utf-8", "replace").strip()
    if run.returncode < 0:
        return "fault", f"crashed: {signal.Signals(-run.returncode).name}"
    if run.returncode not in (0, 1):
        return "fault", f"exit status {run.returncode}: {message}"
    if run.returncode == 1:
        if ": no array '" in message or ": no dataset '" in message:
            return "fault", f"unknown to leat: {message}"
        if not message or (last_part(name) not in message and os.path.basename(path) not in message):
            return "fault", f"refused without a name: {message}"
        return "refused", message
    try:
        values = read()
    except Exception as why:  # whatever it is that the peer lacks
        return "peer", f"{type(why).__name__}: {why}"
    notes, fields = fields_of(run.stdout)
    compared = 0
    for member, wanted in members_of(name, values):
        if member in fields:
            kind, dtype, shape, rows = fields.pop(member)
            different = difference(kind, rows, wanted)
            if different is not None:
                return "fault", f"DIFFERENT: {member} ({kind} {dtype} {shape}, here {wanted.dtype} {wanted.shape}): {different}"
            compared += 1
        elif not is_mentioned(member, name, notes):
            return "fault", f"silent: nothing is said of {member}"
    if fields:
        return "fault", f"DIFFERENT: fields that are not there: {', '.join(fields)}"
    return ("same", "") if compared else ("refused", "; ".join(notes))


def arrays_of_hdf5(path):
    found = []
    with h5py.File(path, "r", locking=False) as file:

        def see(name, what):
            if isinstance(what, h5py.Dataset):
                found.append((name, what.nbytes))

        file.visititems(see)
    return found


def read_hdf5(path, name):
    with h5py.File(path, "r", locking=False) as file:
        return file[name][()]


def arrays_of_zarr(path):
    root = zarr.open(path, mode="r")
    if isinstance(root, zarr.Array):
        return [(pathlib.Path(path).stem, root.nbytes)]
    return [(name, each.nbytes) for name, each in root.members(max_depth=None) if isinstance(each, zarr.Array)]


def read_zarr(path, name):
    root = zarr.open(path, mode="r")
    return numpy.asarray((root if isinstance(root, zarr.Array) else root[name])[...])


def sources_below(folder):
    """(path, is_zarr) of each file and each outermost Zarr hierarchy."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        if {"zarr.json", ".zgroup", ".zarray"} & set(files):
            folders.clear()
            yield parent, True
            continue
        for name in sorted(files):
            path = os.path.join(parent, name)
            if name.endswith(".zarr.zip"):
                unpacked = path[: -len(".zip")]
                if not os.path.isdir(unpacked):
                    with zipfile.ZipFile(path) as archive:
                        archive.extractall(unpacked)
                    yield unpacked, True
            elif os.path.isfile(path) and is_hdf5(path):
                yield path, False


def jobs_of(source, is_zarr):
    arrays, read = (arrays_of_zarr, read_zarr) if is_zarr else (arrays_of_hdf5, read_hdf5)
    try:
        names = arrays(source)
    except Exception as why:
        # leat is asked for an array all the same: it must not crash.
        def refused(why=why):
            raise why

        return [("none", refused)]
    return [(name, lambda name=name: read(source, name)) for name, size in names if size <= BYTES_MAX]


def main():
    program, files, own = sys.argv[1:]
    warnings.simplefilter("ignore")
    groups = [(path.name, path) for path in sorted(pathlib.Path(files).iterdir()) if path.is_dir()] + [("leat's own", own)]
    # libhdf5 lets one thread in; what runs in parallel is leat.
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    faults, refusals = [], []
    print(f"{'':12}{'files':>7}{'arrays':>8}{'same':>7}{'refused':>9}{'peer':>6}{'faults':>8}")
    total = collections.Counter()
    for group, folder in groups:
        counts = collections.Counter()
        running = []
        for source, is_zarr in sources_below(folder):
            counts["files"] += 1
            for name, read in jobs_of(source, is_zarr):
                running.append((source, name, pool.submit(compare, program, source, name, read)))
        for source, name, job in running:
            outcome, said = job.result()
            where = f"{os.path.relpath(source, folder)}: {name}"
            if outcome == "fault" and name == "none" and said.startswith("unknown"):
                outcome = "peer"
            counts["arrays"] += 1
            counts[outcome] += 1
            if outcome == "fault":
                faults.append(f"{group}: {where}: {said}")
            if outcome == "refused":
                refusals.append(f"{group}: {where}: {said}")
        total += counts
        columns = [counts[each] for each in ("files", "arrays", "same", "refused", "peer", "fault")]
        print("{:12}{:7}{:8}{:7}{:9}{:6}{:8}".format(group, *columns), flush=True)
    columns = [total[each] for each in ("files", "arrays", "same", "refused", "peer", "fault")]
    print("{:12}{:7}{:8}{:7}{:9}{:6}{:8}".format("all", *columns))
    refused_list = os.path.join(files, "refused.txt")
    with open(refused_list, "w", encoding="utf-8", errors="backslashreplace") as out:
        out.writelines(f"{each}\n" for each in refusals)
    for each in faults:
        print(f"FAULT: {each}".encode("utf-8", "backslashreplace").decode())
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
