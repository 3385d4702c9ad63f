#!/usr/bin/env python3
"""Writes the TFRecord files of tests/datasets/tfrecord_test.cpp: pip install tfrecord, then run it in this directory.

Example i has an image of a JPEG's first bytes and the number as text i % 9 times, its label i - 5, "numbers" 0 ... i, "score" i / 4 and
the text "name i".
"""
from tfrecord.writer import TFRecordWriter

writer = TFRecordWriter("examples.tfrecord")
for i in range(40):
    writer.write({
        "image": (b"\xff\xd8\xff\xe0" + str(i).encode() * (i % 9), "byte"),
        "label": (i - 5, "int"),
        "numbers": (list(range(i + 1)), "int"),
        "score": (i / 4, "float"),
        "name": (f"name {i}".encode(), "byte"),
    })
writer.close()
