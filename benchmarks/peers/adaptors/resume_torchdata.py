#!/usr/bin/env python3
"""torchdata's StatefulDataLoader over a memmap, without workers: with some it is slower to begin and to go on."""

import pickle

import numpy as np
import torch
import torchdata
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import RandomSampler

import resuming


class Rows(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.rows = np.load(folder / "rows.npy", mmap_mode="r")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.from_numpy(np.array(self.rows[index]))


def write(folder, records):
    np.save(folder / "rows.npy", records)


def loader_of(folder, size):
    rows = Rows(folder)
    sampler = RandomSampler(rows, generator=torch.Generator().manual_seed(7))
    return StatefulDataLoader(rows, batch_size=size, sampler=sampler, num_workers=0)


def batches(folder, size):
    loader = loader_of(folder, size)
    return loader, iter(loader)


def save(loader, _iterator):
    return pickle.dumps(loader.state_dict())


def resumed(folder, size, state):
    loader = loader_of(folder, size)
    loader.load_state_dict(pickle.loads(state))
    return loader, iter(loader)


resuming.main(__doc__, write, batches, save, resumed, {"torchdata": torchdata.__version__, "torch": torch.__version__})
