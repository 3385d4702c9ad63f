#!/usr/bin/env python3
"""Writes the archives of tests/datasets/npy_test.cpp: pip install numpy, then run it in this directory."""
import zipfile

import numpy as np

rows = np.arange(40 * 6 * 5, dtype="f4").reshape(40, 6, 5)
np.savez_compressed("packed.npz", x=rows, y=np.arange(40) * 3, weight=np.arange(40, dtype="f8") / 4, flags=rows[:, 0, :2] > 90)
# Some members packed, some not.
np.savez("mixed.npz", x=rows[:7])
with zipfile.ZipFile("mixed.npz", "a", zipfile.ZIP_DEFLATED) as archive:
    with archive.open("z.npy", "w") as member:
        np.save(member, np.arange(7 * 3, dtype="i2").reshape(7, 3))
