#!/usr/bin/env python3
"""NVIDIA DALI's CPU pipeline: fused random-crop decoding.

As DALI's ResNet-50 example has it for the CPU: readers.file, decoders.image_random_crop (decodes what the crop needs),
resize (linear, antialiased), crop_mirror_normalize; --workers are num_threads.
"""

import nvidia.dali as dali
from nvidia.dali import fn, types

import protocol

given = protocol.image_arguments(__doc__)
paths, labels = protocol.photos(given.data)


@dali.pipeline_def(batch_size=given.batch_size, num_threads=given.workers, device_id=None, prefetch_queue_depth=2)
def train():
    jpegs, classes = fn.readers.file(files=paths, labels=labels, random_shuffle=True, initial_fill=1024, name="reader")
    pixels = fn.decoders.image_random_crop(
        jpegs,
        device="cpu",
        output_type=types.RGB,
        random_area=list(protocol.crop_area),
        random_aspect_ratio=list(protocol.crop_aspect),
    )
    pixels = fn.resize(
        pixels, resize_x=protocol.size, resize_y=protocol.size, interp_type=types.INTERP_LINEAR, antialias=True
    )
    flip = fn.random.coin_flip(probability=0.5)
    if given.job == "u8":
        return fn.flip(pixels, horizontal=flip), classes
    pixels = fn.crop_mirror_normalize(
        pixels,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[255 * m for m in protocol.mean],
        std=[255 * d for d in protocol.deviation],
        mirror=flip,
    )
    return pixels, classes


def batches():
    pipeline = train()
    pipeline.build()
    while True:
        pixels, _classes = pipeline.run()
        yield pixels.as_array()


protocol.measure_images(
    given,
    batches(),
    versions={"nvidia-dali": dali.__version__},
    settings=f"num_threads={given.workers}, device_id=None, prefetch_queue_depth=2, random_shuffle, INTERP_LINEAR, antialias",
)
