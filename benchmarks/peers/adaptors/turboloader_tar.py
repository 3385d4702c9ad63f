#!/usr/bin/env python3
"""TurboLoader's fused path: one tar of JPEGs, train_aug (crop window decoded only, flipped, normalised), antialias on.

As its README has it for training. Its pool of threads is one for each core and cannot be set; --workers are
prefetch_batches. The tar holds the photographs over and over, so that no epoch ends while measured. pin_memory=True, as its
README has it for training: a ring of torch buffers that are used again (page-locked only where there is CUDA).
"""

import itertools

import torch
import turboloader

import protocol

given = protocol.image_arguments(__doc__)
loader = turboloader.DataLoader(
    str(given.made / "repeated.tar"),
    batch_size=given.batch_size,
    image_size=protocol.size,
    output_format="pytorch",
    transform=turboloader.ImageNetNormalize(),
    shuffle=True,
    train_aug=True,
    antialias=True,
    prefetch_batches=given.workers,
    pin_memory=True,
    drop_last=True,
)


def batches():
    for epoch in itertools.count():
        loader.set_epoch(epoch)
        for pixels, _meta in loader:
            yield pixels


protocol.measure_images(
    given,
    batches(),
    versions={"turboloader": turboloader.__version__, "torch": torch.__version__},
    settings=f"train_aug, antialias=True, pin_memory=True (a ring of buffers), prefetch_batches={given.workers}, "
    "a thread for each core",
)
