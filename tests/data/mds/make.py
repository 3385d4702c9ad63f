#!/usr/bin/env python3
"""Writes the shards of tests/datasets/mds_test.cpp with MosaicML's own library (streaming_alone.py says what to install). Run it in this
directory.
"""
import io
import shutil

import numpy as np
from PIL import Image

from streaming_alone import MDSWriter

columns = {
    "image": "jpeg", "drawn": "png", "label": "int", "u8": "uint8", "i32": "int32", "f16": "float16", "f32": "float32", "f64": "float64",
    "text": "str", "blob": "bytes", "ids": "ndarray:uint16", "box": "ndarray:float32:2,2", "any": "ndarray", "grid": "ndarray:int16", "object": "json",
    "digits": "str_int", "real": "str_float",
}


def sample(i):
    picture = Image.fromarray(np.full((8, 8, 3), i * 10, "u1"))
    file = io.BytesIO()
    picture.save(file, "JPEG")
    file.seek(0)
    return {
        "image": Image.open(file), "drawn": picture, "label": i - 3, "u8": np.uint8(i), "i32": np.int32(-i), "f16": np.float16(i / 4),
        "f32": np.float32(i / 8), "f64": i / 16, "text": f"text {i}", "blob": bytes([i]) * i, "ids": np.arange(i + 1, dtype="u2"),
        "box": np.full((2, 2), i, "f4"), "any": np.arange(i + 1), "grid": np.full((2, i + 1), i, "i2"), "object": {"a": i}, "digits": i * 7, "real": i / 4,
    }


for folder, how in {"plain": {}, "packed": {"compression": "zstd"}}.items():
    shutil.rmtree(folder, ignore_errors=True)
    with MDSWriter(out=folder, columns=columns, size_limit=12000, **how) as writer:
        for i in range(20 if folder == "plain" else 2):
            writer.write(sample(i))
