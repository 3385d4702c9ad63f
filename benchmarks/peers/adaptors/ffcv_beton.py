#!/usr/bin/env python3
"""FFCV: its own file format, libjpeg-turbo, OpenCV's INTER_AREA, a pipeline that Numba compiles.

As https://github.com/libffcv/ffcv-imagenet has it, on the CPU: RandomResizedCropRGBImageDecoder, RandomHorizontalFlip,
NormalizeImage, ToTensor, ToTorchImage; OrderOption.RANDOM, os_cache=True. --workers are num_workers. --write makes the
.beton of the photographs' own JPEG bytes: FFCV would encode them again, and smaller files were another job. With --raw it holds their
pixels, which are not decoded then, and take several times the bytes.
"""

import argparse
import pathlib
import sys

import protocol

raw = "--raw" in sys.argv
if raw:
    sys.argv.remove("--raw")
if "--write" in sys.argv:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--write", type=pathlib.Path, required=True)
    given = parser.parse_args()
else:
    given = protocol.image_arguments(__doc__)

import importlib.metadata

import ffcv
import numpy as np
import torch
from ffcv.fields import IntField, RGBImageField


class StoredJpegField(RGBImageField):
    """Takes (width, height, JPEG bytes) where RGBImageField takes a picture, and writes the bytes as they are."""

    def encode(self, destination, field, malloc):
        width, height, jpeg = field
        stored = np.frombuffer(jpeg, np.uint8)
        destination["mode"] = 0  # IMAGE_MODES["jpg"]
        destination["height"], destination["width"] = height, width
        destination["data_ptr"], storage = malloc(stored.nbytes)
        storage[:] = stored


def write(data, to):
    import PIL.Image

    paths, labels = protocol.photos(data)

    def stored(path):
        with PIL.Image.open(path) as picture:
            if raw:
                return np.array(picture.convert("RGB"))
            return (*picture.size, pathlib.Path(path).read_bytes())

    class Photos:
        def __len__(self):
            return len(paths)

        def __getitem__(self, index):
            return stored(paths[index]), labels[index]

    def bytes_of(path):
        with PIL.Image.open(path) as picture:
            return 3 * picture.size[0] * picture.size[1] if raw else pathlib.Path(path).stat().st_size

    largest = max(map(bytes_of, paths))
    page_size = max(1 << 21, 1 << (largest + 4096).bit_length())
    field = RGBImageField(write_mode="raw") if raw else StoredJpegField()
    writer = ffcv.writer.DatasetWriter(str(to), {"image": field, "label": IntField()}, num_workers=1, page_size=page_size)
    writer.from_indexed_dataset(Photos())


def measure(given):
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage

    beton = str(given.made / ("photos-raw.beton" if raw else "photos.beton"))
    paths, _labels = protocol.photos(given.data)
    passes = -(-protocol.images_needed(given) // len(paths))
    loader = Loader(
        beton,
        batch_size=given.batch_size,
        num_workers=given.workers,
        order=OrderOption.RANDOM,
        os_cache=True,
        custom_fields={} if raw else {"image": StoredJpegField},
        drop_last=True,
        indices=np.tile(np.arange(len(paths)), passes),
        pipelines={
            "image": [
                RandomResizedCropRGBImageDecoder(
                    (protocol.size, protocol.size), scale=protocol.crop_area, ratio=protocol.crop_aspect
                ),
                RandomHorizontalFlip(),
                NormalizeImage(
                    255 * np.array(protocol.mean), 255 * np.array(protocol.deviation), np.dtype(np.float32).type
                ),
                ToTensor(),
                ToTorchImage(channels_last=False, convert_back_int16=False),
            ],
            "label": None,
        },
    )
    protocol.measure_images(
        given,
        (batch[0] for batch in loader),
        versions={"ffcv": importlib.metadata.version("ffcv"), "torch": torch.__version__},
        settings=f"num_workers={given.workers}, os_cache=True, OrderOption.RANDOM, INTER_AREA, "
        + ("raw pixels" if raw else "the files' own JPEG bytes"),
    )


if "write" in vars(given):
    write(given.data, given.write)
else:
    measure(given)
