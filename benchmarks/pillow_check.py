#!/usr/bin/env python3
"""Are evaluation pictures Pillow's?  resize(256) -> center_crop(224), on real photographs.

    pip install pillow numpy            # in a scratch environment
    python3 benchmarks/pillow_check.py PHOTOS [--leat build/release/leat]

PHOTOS is a folder as `leat epoch` takes it. `leat epoch --transform eval --dtype u8 --layout nhwc --npy` writes what a
trainer would get; Pillow does torchvision's evaluation transform on the same files; both are compared value by value.
Exits with 1 where any value differs by more than one level.

Pillow 13 takes the vertical pass first where that is cheaper, as leat does, and agrees in every value if its libjpeg
decodes alike. Pillow up to 12 resamples horizontally first, always: values may then differ by one level.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import PIL
from PIL import Image

SIDE = 224
SHORTER = 256
EXTENSIONS = {".jpg", ".jpeg", ".png"}


def files_of(folder):
    """As torchvision's ImageFolder: classes sorted by name, then files sorted by path; a flat folder is one class."""
    classes = sorted(d for d in folder.iterdir() if d.is_dir())
    found = []
    for directory in classes or [folder]:
        found += sorted(p for p in directory.rglob("*") if p.suffix.lower() in EXTENSIONS)
    return found


def pillow_row(path):
    """torchvision's Resize(256) and CenterCrop(224) on a PIL picture."""
    picture = Image.open(path).convert("RGB")
    width, height = picture.size
    if width <= height:
        size = (SHORTER, int(SHORTER * height / width))
    else:
        size = (int(SHORTER * width / height), SHORTER)
    left = int(round((size[0] - SIDE) / 2.0))
    top = int(round((size[1] - SIDE) / 2.0))
    return numpy.asarray(picture.resize(size, Image.Resampling.BILINEAR).crop((left, top, left + SIDE, top + SIDE)))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("photos", type=pathlib.Path)
    arguments.add_argument("--leat", default="build/release/leat")
    given = arguments.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        batches = pathlib.Path(scratch) / "batches.jsonl"
        subprocess.run(
            [given.leat, "epoch", given.photos, "--transform", "eval", "--size", str(SIDE), "--dtype", "u8",
             "--layout", "nhwc", "--no-shuffle", "--digest", "off", "--npy", scratch, "--batches", batches],
            check=True, stdout=subprocess.DEVNULL)
        files = files_of(given.photos)
        compared = differing = largest = 0
        histogram = numpy.zeros(256, dtype=numpy.int64)
        worst = None
        for line in batches.read_text().splitlines():
            batch = json.loads(line)
            rows = numpy.load(next(pathlib.Path(scratch).glob(f"{batch['epoch']}-{batch['batch']}-jpg.npy")))
            for sample, row in zip(batch["ids"], rows):
                difference = numpy.abs(pillow_row(files[sample]).astype(int) - row)
                histogram += numpy.bincount(difference.ravel(), minlength=256)
                compared += 1
                differing += bool(difference.any())
                if difference.max() > largest:
                    largest, worst = int(difference.max()), files[sample]
    values = int(histogram.sum())
    print(f"Pillow {PIL.__version__}: {compared} pictures, {differing} with any difference, "
          f"{values - int(histogram[0])} of {values} values differ, by {largest} at most")
    if compared != len(files):
        print(f"leat delivered {compared} of {len(files)} pictures", file=sys.stderr)
        return 1
    if largest > 1:
        print(f"{worst}: differs by {largest} levels", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
