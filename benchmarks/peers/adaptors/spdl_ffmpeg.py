#!/usr/bin/env python3
"""SPDL: threads, FFmpeg's decoder and its filters.

As https://facebookresearch.github.io/spdl has it: demux, decode with a filter description, aggregate, convert to one buffer,
each a pipe of a PipelineBuilder. The filter cuts the crop out, which is drawn as torchvision draws it, scales it with
swscale's bilinear (whose kernel widens when it shrinks: antialiased), and flips; a last pipe normalises whole batches, as
SPDL's example does. --workers are its threads.
"""

import importlib.metadata
import random

import spdl.io
import spdl.pipeline
import torch

import protocol

given = protocol.image_arguments(__doc__)
torch.set_num_threads(1)
paths, _labels = protocol.photos(given.data)
scale = torch.tensor([1 / (255 * d) for d in protocol.deviation]).view(1, 3, 1, 1)
bias = torch.tensor([-m / d for m, d in zip(protocol.mean, protocol.deviation)]).view(1, 3, 1, 1)


def source():
    while True:
        yield from random.sample(paths, len(paths))


def decode(path):
    packets = spdl.io.demux_image(path)
    left, top, width, height = protocol.random_crop(packets.width, packets.height, random)
    flip = ",hflip" if random.random() < 0.5 else ""
    return spdl.io.decode_packets(
        packets,
        filter_desc=f"crop={width}:{height}:{left}:{top}:exact=1,"
        f"scale={protocol.size}:{protocol.size}:flags=bilinear{flip},format=pix_fmts=rgb24",
    )


def batch(frames):
    pixels = spdl.io.to_torch(spdl.io.convert_frames(frames)).permute(0, 3, 1, 2)
    floats = torch.empty(pixels.shape, dtype=torch.float32)
    torch.mul(pixels, scale, out=floats)
    return floats.add_(bias)


pipeline = (
    spdl.pipeline.PipelineBuilder()
    .add_source(source())
    .pipe(decode, concurrency=given.workers)
    .aggregate(given.batch_size)
    .pipe(batch)
    .add_sink(2)
    .build(num_threads=given.workers)
)
with pipeline.auto_stop():
    protocol.measure_images(
        given,
        pipeline.get_iterator(),
        versions={"spdl": importlib.metadata.version("spdl"), "torch": torch.__version__},
        settings=f"num_threads={given.workers}, decode concurrency {given.workers}, sink of 2, one torch thread",
    )
