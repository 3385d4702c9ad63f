"""tables.py TABLE_VALUES FILES OWN [SEEDS]: reads every column of the Parquet and Arrow files below FILES and OWN, and of as many random
ones as SEEDS says (written by pyarrow, polars, pandas and fastparquet), with pyarrow and with leat (by the program TABLE_VALUES), and CSV
and JSON lines, random or of pandas, with Python's csv and json, and compares the values.

Prints for each group of files, of columns:

    same       every value, and every null
    refused    leat said which column it does not read, or that the file is encrypted, and why
    peer       pyarrow does not read it, so there is nothing to compare with; leat did not crash
    faults     other values, a crash, or an error that does not name the column: each is named

and exits 1 where there are faults.
"""

import collections
import concurrent.futures
import csv
import datetime
import decimal
import io
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile

import datasets
import fastparquet
import numpy
import pandas
import polars
import pyarrow
import pyarrow.parquet

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hub_sets

SECONDS = 120
ROWS_MAX = 20_000  # each value of a packed column is expanded for itself
MISSING = 2**64 - 1
FORMATS = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f16": "e", "f32": "f", "f64": "d"}


class Refused(Exception):
    pass


def read_with_leat(program, path, name):
    """Kind, type and each row's bytes; None where it has none."""
    run = subprocess.run([program, path, name], capture_output=True, timeout=SECONDS)
    message = run.stderr.decode("utf-8", "replace").strip()
    if run.returncode < 0:
        raise RuntimeError(f"crashed: {signal.Signals(-run.returncode).name}")
    if run.returncode == 1:
        raise Refused(message)
    if run.returncode != 0:
        raise RuntimeError(f"exit status {run.returncode}: {message}")
    end = run.stdout.index(b"\n")
    kind, dtype, count, _ = run.stdout[:end].decode().split(" ", 3)
    rows, at = [], end + 1
    for _ in range(int(count)):
        size = struct.unpack_from("<Q", run.stdout, at)[0]
        at += 8
        if size == MISSING:
            rows.append(None)
            continue
        rows.append(run.stdout[at : at + size])
        at += size
    return kind, dtype, rows


def same_value(kind, dtype, got, value):
    if isinstance(value, list) and None in value:
        value = None  # No number stands for the null: the row lacks the list.
    if got is None or value is None:
        return got is None and value is None
    if kind == "column":
        is_real = dtype.startswith("f")
        if isinstance(value, float) != is_real:
            return False
        return got == struct.pack("<d" if is_real else "<q", value) or (value != value and numpy.isnan(struct.unpack("<d", got)[0]))
    if isinstance(value, list):
        elements = [int(each) if isinstance(each, bool) else each for each in value]
        return got == struct.pack(f"<{len(elements)}{FORMATS[dtype]}", *elements)
    return got == (value.encode() if isinstance(value, str) else value)


def compare(program, path, name, values):
    """Outcome and what there is to say. `values` are pyarrow's, one a row."""
    try:
        kind, dtype, rows = read_with_leat(program, path, name)
    except Refused as refusal:
        last = name.split(".")[0]
        is_unknown = f"it has no column '{name}'" in str(refusal) or f"it has no '{name}'" in str(refusal)
        if not is_unknown and (last in str(refusal) or "encrypted" in str(refusal)):
            return "refused", str(refusal)
        return "fault", f"an error that does not name the column: {refusal}"
    except (RuntimeError, subprocess.TimeoutExpired) as failure:
        return "fault", str(failure)
    if values is None:
        return "peer", "only leat reads it"
    if len(rows) != len(values):
        return "fault", f"{len(rows)} rows, not {len(values)}"
    for i, (got, value) in enumerate(zip(rows, values)):
        try:
            same = same_value(kind, dtype, got, value)
        except struct.error:
            same = False
        if not same:
            return "fault", f"row {i} is {got!r:.80} of {kind} {dtype}, not {value!r:.80}"
    return "same", ""


def steps_into(value, steps):
    """The value of a leaf below `value`. A list gives a list."""
    if value is None:
        return None
    if not steps:
        return value
    if steps[0] in ("list", "bag", "array", "key_value") and isinstance(value, list):
        return [steps_into(each, steps[2:]) for each in value]
    return steps_into(value.get(steps[0]), steps[1:])


def columns_of_parquet(path):
    """Name and values of each leaf of the schema; None where pyarrow does not read it."""
    file = pyarrow.parquet.ParquetFile(path)
    if file.metadata.num_rows > ROWS_MAX:
        return
    leaves = [file.schema.column(i).path for i in range(len(file.schema))]
    for leaf in leaves:
        top, *steps = leaf.split(".")
        try:
            column = file.read(columns=[leaf]).column(0)
            values = [steps_into(each, steps) for each in column.to_pylist()]
        except Exception:  # whatever pyarrow cannot read, or names in its own way
            values = None
        yield leaf, values


def flattened(field, values):
    if pyarrow.types.is_struct(field.type):
        for inner in field.type:
            yield from flattened(inner.with_name(f"{field.name}.{inner.name}"),
                                 [None if each is None else each.get(inner.name) for each in values])
        return
    yield field.name, values


def columns_of_arrow(path):
    with pyarrow.OSFile(os.fspath(path), "rb") as file:
        try:
            table = pyarrow.ipc.open_file(file).read_all()
        except pyarrow.ArrowInvalid:
            file.seek(0)
            table = pyarrow.ipc.open_stream(file).read_all()
        if table.num_rows > ROWS_MAX:
            return
        for field, column in zip(table.schema, table.columns):
            try:
                yield from flattened(field, column.to_pylist())
            except Exception:
                yield field.name, None


def is_parquet(path):
    with open(path, "rb") as file:
        return file.read(4) == b"PAR1"


# Random tables: every type that there is, with and without nulls.
def random_type(drawn, depth=0):
    simple = [pyarrow.int8(), pyarrow.int16(), pyarrow.int32(), pyarrow.int64(), pyarrow.uint8(), pyarrow.uint16(), pyarrow.uint32(),
              pyarrow.uint64(), pyarrow.float16(), pyarrow.float32(), pyarrow.float64(), pyarrow.bool_(), pyarrow.string(),
              pyarrow.binary(), pyarrow.large_string(), pyarrow.large_binary(), pyarrow.binary(5), pyarrow.timestamp("us"),
              pyarrow.date32(), pyarrow.decimal128(9, 2)]
    if depth < 2 and drawn.random() < 0.3:
        if drawn.random() < 0.6:
            return pyarrow.list_(random_type(drawn, depth + 1))
        return pyarrow.struct([pyarrow.field(f"m{i}", random_type(drawn, depth + 1), nullable=drawn.random() < 0.7)
                               for i in range(drawn.randrange(1, 3))])
    return drawn.choice(simple)


def random_value(drawn, kind, nulls):
    types = pyarrow.types
    if drawn.random() < nulls:
        return None
    if types.is_struct(kind):
        return {each.name: random_value(drawn, each.type, nulls if each.nullable else 0) for each in kind}
    if types.is_list(kind):
        # A list with a null in it is none; they are rare, so that most lists are compared.
        inside = nulls if drawn.random() < 0.05 else 0
        return [random_value(drawn, kind.value_type, inside) for _ in range(drawn.randrange(5))]
    if types.is_boolean(kind):
        return drawn.random() < 0.5
    if types.is_integer(kind):
        bits = kind.bit_width
        unsigned = types.is_unsigned_integer(kind)
        low, high = (0, 2**min(bits, 63) - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return drawn.choice([low, high, drawn.randint(low, high), drawn.randint(0, 3)])
    if types.is_float16(kind):
        return numpy.float16(drawn.randrange(-99, 99) / 4)
    if types.is_float32(kind):
        return float(numpy.float32(drawn.choice([drawn.gauss(0, 1e6), 0.0, float("inf")])))
    if types.is_floating(kind):
        return drawn.choice([drawn.gauss(0, 1e9), 0.0, float("-inf")])
    if types.is_timestamp(kind):
        return datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=drawn.randrange(10**6))
    if types.is_date(kind):
        return datetime.date(2020, 1, 1) + datetime.timedelta(days=drawn.randrange(1000))
    if types.is_decimal(kind):
        return decimal.Decimal(drawn.randrange(10**6)) / 100
    if types.is_fixed_size_binary(kind):
        return drawn.randbytes(kind.byte_width)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return drawn.randbytes(drawn.choice([0, 1, 7, 300]))
    return drawn.choice(["", "a", "größe", "same text", f"text {drawn.randrange(10**6)}", "x" * drawn.randrange(400)])


def random_table(drawn):
    rows = drawn.choice([1, 7, 100, 700])
    columns, fields = [], []
    for i in range(drawn.randrange(1, 8)):
        kind = random_type(drawn)
        nullable = drawn.random() < 0.7
        nulls = drawn.choice([0.0, 0.1, 0.9]) if nullable else 0
        fields.append(pyarrow.field(f"c{i}", kind, nullable=nullable))
        columns.append(pyarrow.array([random_value(drawn, kind, nulls) for _ in range(rows)], kind))
    return pyarrow.Table.from_arrays(columns, schema=pyarrow.schema(fields))


def write_random(folder, seed):
    drawn = random.Random(seed)
    made = random_table(drawn)
    pyarrow.parquet.write_table(
        made, folder / f"{seed}.parquet", compression=drawn.choice(["none", "none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
        use_dictionary=drawn.random() < 0.5, data_page_version=drawn.choice(["1.0", "2.0"]), row_group_size=drawn.choice([3, 50, 1000]),
        data_page_size=drawn.choice([32, 1000, 1 << 20]), write_batch_size=drawn.choice([1, 16, 1024]),
        write_page_index=drawn.random() < 0.5, store_schema=drawn.random() < 0.7)
    codec = drawn.choice([None, None, "lz4", "zstd"])
    how = pyarrow.ipc.new_file if drawn.random() < 0.5 else pyarrow.ipc.new_stream
    with pyarrow.OSFile(os.fspath(folder / f"{seed}.arrow"), "wb") as file:
        with how(file, made.schema, options=pyarrow.ipc.IpcWriteOptions(compression=codec)) as writer:
            writer.write_table(made, max_chunksize=drawn.choice([5, 64, 1000]))


# What others write: of the columns that they take.
def write_by_others(folder, seed):
    drawn = random.Random(f"others {seed}")
    made = random_table(drawn)
    polars.from_arrow(made).write_parquet(
        folder / f"{seed}-polars.parquet", compression=drawn.choice(["uncompressed", "snappy", "gzip", "zstd", "lz4"]),
        row_group_size=drawn.choice([10, 200]), data_page_size=drawn.choice([64, 1 << 20]))
    kinds = pyarrow.types
    plain = [each.name for each in made.schema if not (kinds.is_nested(each.type) or kinds.is_decimal(each.type) or kinds.is_date(each.type)
                                                       or kinds.is_float16(each.type) or kinds.is_fixed_size_binary(each.type))]
    if not plain:
        return
    frame = made.select(plain).to_pandas()
    fastparquet.write(os.fspath(folder / f"{seed}-fastparquet.parquet"), frame, compression=drawn.choice([None, "SNAPPY", "GZIP", "ZSTD"]),
                      row_group_offsets=drawn.choice([20, 10_000]), write_index=False)


# What pandas users write: a frame as Parquet, Feather, CSV and JSON lines. Values of the latter two as their texts are read.
def write_by_pandas(folder, seed):
    drawn = random.Random(f"pandas {seed}")
    rows = drawn.choice([1, 30, 500])
    kinds = {
        "text": lambda: drawn.choice(["", "a, b", "größe", 'a "quote"', "two\nlines", f"text {drawn.randrange(1000)}"]),
        "whole": lambda: drawn.randrange(-(2**53), 2**53),
        "real": lambda: drawn.gauss(0, 1e6),
        "truth": lambda: drawn.random() < 0.5,
    }
    frame = pandas.DataFrame({f"{kind}{i}": [kinds[kind]() for _ in range(rows)]
                              for i in range(drawn.randrange(1, 3)) for kind in kinds if drawn.random() < 0.8 or kind == "whole"})
    if drawn.random() < 0.3:
        frame = frame.set_index(frame.columns[0])
    frame.to_parquet(folder / f"{seed}-pandas.parquet", compression=drawn.choice([None, "snappy", "zstd"]), engine="pyarrow")
    frame.reset_index().to_feather(folder / f"{seed}-pandas.feather", compression=drawn.choice(["lz4", "uncompressed", "zstd"]))
    separator = drawn.choice([",", "\t", ";"])
    frame.to_csv(folder / f"{seed}-pandas.csv", sep=separator, index=drawn.random() < 0.3)
    with open(folder / f"{seed}-pandas.csv", newline="", encoding="utf-8") as file:
        names, *of_csv = csv.reader(file, delimiter=separator)
    frame.to_json(folder / f"{seed}-pandas.jsonl", orient="records", lines=True, force_ascii=drawn.random() < 0.5)
    lines = [json.loads(line, parse_int=str, parse_float=str)
             for line in (folder / f"{seed}-pandas.jsonl").read_text(encoding="utf-8").splitlines()]
    return ([(name or "column 0", [row[i] for row in of_csv]) for i, name in enumerate(names)],
            [(name, [str(int(line[name])) if isinstance(line[name], bool) else line[name] for line in lines]) for name in lines[0]])


def write_random_csv(path, seed):
    """Names, and the values of each row as Python's csv reads them."""
    drawn = random.Random(seed)
    width = drawn.randrange(2, 6)
    separator = drawn.choice(",;")
    pieces = ["", "a", '"', separator, "\n", "größe", " ", "12", "-0.5", "\t", "''"]
    rows = [[f"name {i}" for i in range(width)]]
    for _ in range(drawn.randrange(1, 200)):
        rows.append(["".join(drawn.choice(pieces) for _ in range(drawn.randrange(6))) for _ in range(width)])
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator=drawn.choice(["\n", "\r\n"]),
                        quoting=drawn.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    writer.writerows(rows)
    content = text.getvalue()
    if drawn.random() < 0.3:
        content = content.rstrip("\r\n") if not content.endswith(separator) and content.rstrip("\r\n").endswith('"') else content
    path.write_bytes((b"\xef\xbb\xbf" if drawn.random() < 0.3 else b"") + content.encode())
    read = list(csv.reader(io.StringIO(content, newline=""), delimiter=separator))
    return read[0], read[1:]


def main():
    program, files, own = sys.argv[1:4]
    seeds = int(sys.argv[4]) if len(sys.argv) > 4 else 60
    faults, counts = [], collections.defaultdict(collections.Counter)
    jobs = []
    with tempfile.TemporaryDirectory() as made, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = pathlib.Path(made)

        def check(group, path, name, values):
            jobs.append((group, path, name, pool.submit(compare, program, os.fspath(path), name, values)))

        def check_file(group, path):
            try:
                columns = list(columns_of_parquet(path) if is_parquet(path) else columns_of_arrow(path))
            except Exception as failure:
                print(f"{path}: pyarrow does not open it: {failure!s:.100}")
                return
            counts[group]["files"] += 1
            for name, values in columns:
                check(group, path, name, values)

        for root, group in ((own, "tests/data"), *((os.fspath(each), each.name) for each in sorted(pathlib.Path(files).iterdir()))):
            for path in sorted(pathlib.Path(root).rglob("*")):
                if path.suffix in (".parquet", ".parq", ".arrow", ".feather") and path.is_file():
                    check_file(group, path)
        datasets.disable_progress_bars()
        for name, of_hub in hub_sets.sets():
            hub_sets.write(made / name, of_hub)
            for path in sorted((made / name).rglob("*")):
                if path.suffix in (".parquet", ".arrow"):
                    check_file("Hub", path)
        for seed in range(seeds):
            write_random(made, seed)
            check_file("random Parquet", made / f"{seed}.parquet")
            check_file("random Arrow", made / f"{seed}.arrow")
            write_by_others(made, seed)
            for writer in ("polars", "fastparquet"):
                path = made / f"{seed}-{writer}.parquet"
                if path.exists():
                    check_file(writer, path)
            of_csv, of_lines = write_by_pandas(made, seed)
            for ending in ("parquet", "feather"):
                check_file("pandas", made / f"{seed}-pandas.{ending}")
            for ending, columns in (("csv", of_csv), ("jsonl", of_lines)):
                counts["pandas"]["files"] += 1
                for name, values in columns:
                    check("pandas", made / f"{seed}-pandas.{ending}", name, values)
            path = made / f"{seed}.csv"
            names, rows = write_random_csv(path, seed)
            counts["random CSV"]["files"] += 1
            for i, name in enumerate(names):
                check("random CSV", path, name, [row[i] for row in rows])
        for group, path, name, job in jobs:
            outcome, what = job.result()
            counts[group][outcome] += 1
            if outcome == "fault":
                faults.append(f"{path}: {name}: {what}")
    words = ("files", "same", "refused", "peer", "fault")
    print(f"{'':17}" + "".join(f"{word:>9}" for word in words))
    for group, of in counts.items():
        print(f"{group:17}" + "".join(f"{of[word]:>9}" for word in words))
    total = sum(counts.values(), collections.Counter())
    print(f"{'all':17}" + "".join(f"{total[word]:>9}" for word in words))
    for fault in faults:
        print(f"fault: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
