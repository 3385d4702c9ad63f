#!/usr/bin/env python3
"""nanoGPT's get_batch, for the CPU: a memmap for every batch, windows of 1,024 at random, x and y as int64.

It is that of https://github.com/karpathy/nanoGPT (train.py, MIT licence).
"""

import numpy as np
import torch

import protocol

given = protocol.token_arguments(__doc__)
torch.set_num_threads(1)  # Copies of 8 KiB: more threads would only wait, at the cost of CPU.


def get_batch():
    # A new memmap for every batch, as nanoGPT has it: https://stackoverflow.com/questions/45132940
    data = np.memmap(given.data, dtype=np.uint16, mode="r")
    ix = torch.randint(len(data) - protocol.token_length, (protocol.token_rows,))
    x = torch.stack([torch.from_numpy((data[i : i + protocol.token_length]).astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy((data[i + 1 : i + 1 + protocol.token_length]).astype(np.int64)) for i in ix])
    return x, y


def batches():
    while True:
        yield get_batch()


protocol.measure_tokens(
    given,
    batches(),
    dtype="int64",
    versions={"torch": torch.__version__, "NumPy": np.__version__},
    settings="one thread, as train.py calls it",
)
