#!/usr/bin/env python3
"""MosaicML Streaming over MDS shards on this machine, without workers."""

import pickle

import streaming
from streaming import MDSWriter, StreamingDataLoader, StreamingDataset

import resuming


def write(folder, records):
    with MDSWriter(out=str(folder / "mds"), columns={"row": "bytes"}) as out:
        for row in records:
            out.write({"row": row.tobytes()})


def loader_of(folder, size):
    rows = StreamingDataset(local=str(folder / "mds"), shuffle=True, shuffle_seed=7, batch_size=size)
    # A dict of columns: of anything else the loader, which counts samples for its state, takes the first item's length.
    return StreamingDataLoader(rows, batch_size=size, num_workers=0, collate_fn=lambda batch: {"row": [each["row"] for each in batch]})


def rows_of(loader):
    return (batch["row"] for batch in loader)


def batches(folder, size):
    loader = loader_of(folder, size)
    return loader, rows_of(loader)


def save(loader, _iterator):
    return pickle.dumps(loader.state_dict())


def resumed(folder, size, state):
    loader = loader_of(folder, size)
    loader.load_state_dict(pickle.loads(state))
    return loader, rows_of(loader)


streaming.base.util.clean_stale_shared_memory()  # of a process that was ended
resuming.main(__doc__, write, batches, save, resumed, {"mosaicml-streaming": streaming.__version__})
