#!/usr/bin/env python3
"""datago's files, cropped to one square and resized, as its README has it; the loop makes batches with NumPy. --workers are DATAGO_MAX_TASKS."""

import importlib.metadata
import json
import os
import sys

import numpy as np

import protocol

given = protocol.image_arguments(__doc__)
if given.job != "eval":
    sys.exit("datago draws no random crop: --job eval")
os.environ["DATAGO_MAX_TASKS"] = str(given.workers)  # read when its first client is made
import datago

datago.initialize_logging(log_level="error")
config = {
    "source_type": "file",
    "source_config": {"root_path": str(given.data), "random_sampling": True, "rank": 0, "world_size": 1},
    "image_config": {
        "crop_and_resize": True,
        "default_image_size": protocol.size,
        "downsampling_ratio": protocol.size,
        "min_aspect_ratio": 1.0,
        "max_aspect_ratio": 1.0,
        "image_to_rgb8": True,
    },
    "limit": 1_000_000_000,
    "samples_buffer_size": given.batch_size,
}


def pictures():
    client = datago.DatagoClient(json.dumps(config))
    while True:
        client.start()
        while (sample := client.get_sample()) is not None:
            yield np.asarray(sample.image)


def batches():
    source = pictures()
    while True:
        batch = np.empty((given.batch_size, protocol.size, protocol.size, 3), np.uint8)
        for row in batch:
            row[...] = next(source)
        yield batch


protocol.measure_images(
    given,
    batches(),
    versions={"datago": importlib.metadata.version("datago"), "numpy": np.__version__},
    settings=f"DATAGO_MAX_TASKS={given.workers}, samples_buffer_size={given.batch_size}",
)
