#!/usr/bin/env python3
"""leat from Python, as its README has it: pyleat.Loader over a folder, batches by `for` as NumPy arrays. --workers are decode threads."""

import numpy
import pyleat as leat

import protocol

given = protocol.image_arguments(__doc__)
image = leat.Image("jpg")
if given.job == "eval":
    image = image.resize(protocol.size).center_crop(protocol.size)
else:
    image = image.random_resized_crop(protocol.size, protocol.crop_area, protocol.crop_aspect).random_flip()
image = image.as_("u8").as_("nhwc") if given.job != "f32" else image.normalize((protocol.mean, protocol.deviation))
loader = leat.Loader(str(given.data), image, leat.Label("cls"), batch_size=given.batch_size, seed=7, shuffle=True, drop_last=True,
                     decode_threads=given.workers, to="numpy")


def batches():
    while True:
        yield from (batch["jpg"] for batch in loader)


protocol.measure_images(
    given,
    batches(),
    versions={"pyleat": leat.__version__, "NumPy": numpy.__version__},
    settings="decode_threads as many as CPUs, defaults else",
)
