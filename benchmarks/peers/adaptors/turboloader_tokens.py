#!/usr/bin/env python3
"""TurboLoader's TokenDataLoader: a memmap, windows of 1,024 at random, x and y as int64."""

import sys

# It imports PyTorch wherever that is installed, and without CUDA uses nothing of it: neither its start nor its memory is
# TurboLoader's.
sys.modules["torch"] = None

import numpy as np
import turboloader
from turboloader.sequence import TokenDataLoader

import protocol

given = protocol.token_arguments(__doc__)
loader = TokenDataLoader(
    str(given.data),
    seq_len=protocol.token_length,
    batch_size=protocol.token_rows,
    steps_per_epoch=given.warm + given.batches,
)
protocol.measure_tokens(
    given,
    loader,
    dtype="int64",
    versions={"turboloader": turboloader.__version__, "NumPy": np.__version__},
    settings="shuffle=True, without CUDA: NumPy arrays",
)
