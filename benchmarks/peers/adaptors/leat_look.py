#!/usr/bin/env python3
"""What leat's batches hold, in the words of protocol.py's --look: a few batches, written by `leat epoch --npy`."""

import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--leat", required=True)
parser.add_argument("--data", required=True)
parser.add_argument("--job", choices=("f32", "u8"), default="f32")
parser.add_argument("--batch-size", type=int, default=100)
parser.add_argument("--batches", type=int, default=5)
given = parser.parse_args()
with tempfile.TemporaryDirectory() as folder:
    subprocess.run(
        [given.leat, "epoch", given.data, "--batch-size", str(given.batch_size), "--limit", str(given.batches), "--npy",
         folder, "--digest", "off", "--json", *(["--dtype", "u8", "--layout", "nhwc"] if given.job == "u8" else [])],
        check=True, stdout=subprocess.DEVNULL)
    arrays = [np.load(file) for file in sorted(pathlib.Path(folder).glob("*.npy"))]
pictures = [array.astype(np.float64) for array in arrays if array.ndim == 4]
channels = (0, 2, 3) if given.job == "f32" else (0, 1, 2)
print(json.dumps({"look": {
    "mean": np.mean([each.mean(axis=channels) for each in pictures], axis=0).round(4).tolist(),
    "deviation": np.mean([each.std(axis=channels) for each in pictures], axis=0).round(4).tolist(),
}}))
