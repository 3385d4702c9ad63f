#!/usr/bin/env python3
"""MLX Data: a stream of one-verb stages with prefetch at its end.

As https://ml-explore.github.io/mlx-data has it: shuffle, to_stream, load_image, image_random_area_crop, image_resize,
image_random_h_flip, batch, and prefetch, whose threads run the whole line, a batch each; --workers are those threads. It
makes u8 NHWC; for f32 NCHW a key_transform of NumPy's follows the batch, within the prefetch.
"""

import importlib.metadata

import mlx.data as mlx
import numpy as np

import protocol

given = protocol.image_arguments(__doc__)
paths, labels = protocol.photos(given.data)
scale = np.float32([1 / (255 * d) for d in protocol.deviation]).reshape(3, 1)
bias = np.float32([-m / d for m, d in zip(protocol.mean, protocol.deviation)]).reshape(3, 1)


def normalised(pixels):
    """By picture, which stay in the cache between the passes, and planes first: of five ways the one that took least CPU."""
    floats = np.empty((len(pixels), 3, protocol.size * protocol.size), np.float32)
    for picture, planes in zip(pixels, floats):
        np.multiply(np.ascontiguousarray(picture.reshape(-1, 3).T), scale, out=planes)
        planes += bias
    return floats.reshape(len(pixels), 3, protocol.size, protocol.size)


stream = (
    mlx.buffer_from_vector([{"image": path.encode(), "label": label} for path, label in zip(paths, labels)])
    .shuffle()
    .to_stream()
    .repeat(-(-protocol.images_needed(given) // len(paths)) + 1)
    .load_image("image")
    .image_random_area_crop("image", protocol.crop_area, protocol.crop_aspect)
    .image_resize("image", protocol.size, protocol.size)
    .image_random_h_flip("image", 0.5)
    .batch(given.batch_size)
)
if given.job == "f32":
    stream = stream.key_transform("image", normalised)
protocol.measure_images(
    given,
    (np.asarray(sample["image"]) for sample in stream.prefetch(given.workers, given.workers)),
    versions={"mlx-data": importlib.metadata.version("mlx-data"), "NumPy": np.__version__},
    settings=f"prefetch({given.workers}, {given.workers}); its resize antialiases always"
    + (", NumPy normalises" if given.job == "f32" else ""),
)
