#!/usr/bin/env python3
"""Grain's MapDataset over a memmap, read in this process."""

import json

import grain
import numpy as np

import resuming


class Rows:
    def __init__(self, folder):
        self.rows = np.load(folder / "rows.npy", mmap_mode="r")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return np.array(self.rows[index])


def write(folder, records):
    np.save(folder / "rows.npy", records)


def batches(folder, size):
    loader = grain.MapDataset.source(Rows(folder)).seed(7).shuffle().batch(size).to_iter_dataset()
    return loader, iter(loader)


def save(_loader, iterator):
    return json.dumps(iterator.get_state()).encode()


def resumed(folder, size, state):
    loader, iterator = batches(folder, size)
    iterator.set_state(json.loads(state))
    return loader, iterator


resuming.main(__doc__, write, batches, save, resumed, {"grain": grain.__version__})
