#!/usr/bin/env python3
"""Writes the LMDB databases of tests/datasets/lmdb_test.cpp: pip install lmdb msgpack, then run it in this directory.

The value of the key number i is i * 37 % 101 times the number as text; every tenth one is 30 times as long, and so has pages of its own.
"""
import os
import pickle
import shutil

import lmdb
import msgpack


def value(i):
    return str(i).encode() * (i * 37 % 101 * (30 if i % 10 == 0 else 1))


def make(path, **how):
    shutil.rmtree(path, ignore_errors=True)
    for file in [path, path + "-lock"]:
        if os.path.isfile(file):
            os.remove(file)
    return lmdb.open(path, map_size=1 << 22, lock=False, **how)


# Several transactions, the later ones overwriting and deleting: pages are not in the order of keys.
env = make("folder.lmdb")
for i in range(0, 200, 3):
    with env.begin(write=True) as txn:
        for k in (i, i + 1, i + 2):
            txn.put(f"{k * 7 % 200:05d}".encode(), b"old" * (k % 50))
for i in range(0, 200, 20):
    with env.begin(write=True) as txn:
        for k in range(i, i + 20):
            txn.put(f"{k:05d}".encode(), value(k))
with env.begin(write=True) as txn:
    for k in range(180, 200):
        txn.delete(f"{k:05d}".encode())
    txn.put(b"__len__", b"180")
env.close()

env = make("ocr.mdb", subdir=False)
with env.begin(write=True) as txn:
    for i in range(1, 31):
        txn.put(b"image-%09d" % i, b"\xff\xd8\xff\xe0" + value(i))
        if i != 7:
            txn.put(b"label-%09d" % i, b"word %d" % i)
    txn.put(b"num-samples", b"30")
env.close()

env = make("sizes.mdb", subdir=False)
with env.begin(write=True) as txn:
    for i in range(12):
        txn.put(b"64-%05d" % i, b"\x89PNG\r\n\x1a\n" + value(i))
    txn.put(b"length", b"12")
env.close()

env = make("named.mdb", subdir=False, max_dbs=4)
with env.begin(write=True) as txn:
    for name in (b"first", b"second"):
        db = env.open_db(name, txn=txn)
        for i in range(5):
            txn.put(b"%d" % i, name + b"%d" % i, db=db)
env.close()

env = make("duplicates.mdb", subdir=False, max_dbs=4)
with env.begin(write=True) as txn:
    db = env.open_db(b"many", txn=txn, dupsort=True)
    for i in range(5):
        txn.put(b"key", b"%d" % i, db=db)
env.close()

lmdb_empty = make("empty.mdb", subdir=False)
lmdb_empty.close()


# What scripts that convert folders of pictures write.
def sample(i):
    key = "key %d" % i  # It comes twice: a pickle names it by its memo.
    return {"image": b"\xff\xd8\xff\xe0" + value(i), "label": i * 1000 - 5000, "meta": {"id": key, "again": key},
            "box": [i, -i, i + 0.5], "seen": i % 2 == 0, "nothing": None if i != 3 else b"", "long": "x" * 300}


env = make("pickled.mdb", subdir=False)
with env.begin(write=True) as txn:
    for i in range(12):
        txn.put(b"%02d" % i, pickle.dumps(sample(i), protocol=3 + i % 3))
env.close()

env = make("tuples.mdb", subdir=False)
with env.begin(write=True) as txn:
    for i in range(12):
        txn.put(b"%02d" % i, pickle.dumps((sample(i)["image"], i - 6), protocol=3 + i % 3))
env.close()

env = make("msgpack.mdb", subdir=False)
with env.begin(write=True) as txn:
    for i in range(12):
        txn.put(b"%02d" % i, msgpack.packb(sample(i), use_single_float=i % 2 == 1))
env.close()

env = make("objects.mdb", subdir=False)
with env.begin(write=True) as txn:
    txn.put(b"0", pickle.dumps((b"bytes", range(3)), protocol=4))
env.close()

# liblmdb 1.0 writes files that 0.9 does not read: pip install lmdb==3.0.0, which has both.
env = make("newer.mdb", subdir=False, lib_version=1)
with env.begin(write=True) as txn:
    txn.put(b"0", b"value")
env.close()
