#!/usr/bin/env python3
"""Is colour torchvision's?  Each operation on real photographs, value by value.

    pip install torch torchvision numpy            # in a scratch environment
    python3 benchmarks/augment_check.py PHOTOS [--leat build/release/leat]

PHOTOS is a folder as `leat epoch` takes it. `leat epoch --transform eval --dtype u8 --npy` writes pictures without colour, and again
with `--augment`; torchvision.transforms.v2 does the same to the former, as u8 tensors. Exits with 1 where fewer values than promised are
within one level: 99.99 %, of blur 99.5 %, of bilinear warps 99.98 %, of nearest
ones 99.95 %; tables have to be equal.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
import torchvision
from torchvision.transforms.v2 import InterpolationMode, functional as F

EQUAL, LEVEL, BLUR, WARP, NEAREST = "equal", 0.9999, 0.995, 0.9998, 0.9995

SMOOTH = InterpolationMode.BILINEAR


def nearest_affine(x, degrees=0.0, translate=(0, 0), scale=1.0, shear=(0.0, 0.0), how=InterpolationMode.NEAREST, center=None):
    return F.affine(x, degrees, list(translate), scale, list(shear), how, center=center)


OPERATIONS = [
    ("rotate(13, bilinear)", lambda x: F.rotate(x, 13, SMOOTH), WARP),
    ("rotate(-30, bilinear)", lambda x: F.rotate(x, -30, SMOOTH), WARP),
    ("rotate(9)", lambda x: F.rotate(x, 9), NEAREST),
    ("rotate(90)", lambda x: F.rotate(x, 90), EQUAL),
    ("affine(12, 0, 0, 1.1, 7, -4, bilinear)", lambda x: nearest_affine(x, 12, scale=1.1, shear=(7.0, -4.0), how=SMOOTH), WARP),
    ("affine(-8, 0, 0, 0.8, -3, 5)", lambda x: nearest_affine(x, -8, scale=0.8, shear=(-3.0, 5.0)), NEAREST),
    ("shear(10, 0, nearest, 0, 0, 0)", lambda x: nearest_affine(x, shear=(10.0, 0.0), center=[0, 0]), NEAREST),
    ("translate(0.25, -0.125)", lambda x: nearest_affine(x, translate=(56, -28)), EQUAL),
    ("vertical_flip", F.vertical_flip, EQUAL),
    ("rotate(9) equalize", lambda x: F.equalize(F.rotate(x, 9)), 0.995),
    ("brightness(1.3)", lambda x: F.adjust_brightness(x, 1.3), EQUAL),
    ("brightness(0.37)", lambda x: F.adjust_brightness(x, 0.37), EQUAL),
    ("contrast(0.8)", lambda x: F.adjust_contrast(x, 0.8), LEVEL),
    ("contrast(1.7)", lambda x: F.adjust_contrast(x, 1.7), LEVEL),
    ("saturation(1.25)", lambda x: F.adjust_saturation(x, 1.25), LEVEL),
    ("saturation(0.3)", lambda x: F.adjust_saturation(x, 0.3), LEVEL),
    ("hue(0.07)", lambda x: F.adjust_hue(x, 0.07), LEVEL),
    ("hue(-0.31)", lambda x: F.adjust_hue(x, -0.31), LEVEL),
    ("gamma(0.8)", lambda x: F.adjust_gamma(x, 0.8), LEVEL),
    ("grayscale", lambda x: F.rgb_to_grayscale(x, 3), LEVEL),
    ("invert", F.invert, EQUAL),
    ("posterize(5)", lambda x: F.posterize(x, 5), EQUAL),
    ("solarize(200)", lambda x: F.solarize(x, 200), EQUAL),
    ("autocontrast", F.autocontrast, EQUAL),
    ("equalize", F.equalize, EQUAL),
    ("sharpness(2)", lambda x: F.adjust_sharpness(x, 2), LEVEL),
    ("sharpness(0.4)", lambda x: F.adjust_sharpness(x, 0.4), LEVEL),
    ("gaussian_blur(23, 1.3)", lambda x: F.gaussian_blur(x, 23, 1.3), BLUR),
    ("gaussian_blur(9, 0.5)", lambda x: F.gaussian_blur(x, 9, 0.5), BLUR),
    ("brightness(1.3) posterize(5) autocontrast solarize(200)",
     lambda x: F.solarize(F.autocontrast(F.posterize(F.adjust_brightness(x, 1.3), 5)), 200), EQUAL),
    ("brightness(1.3) contrast(0.8) saturation(1.25) hue(0.07)",
     lambda x: F.adjust_hue(F.adjust_saturation(F.adjust_contrast(F.adjust_brightness(x, 1.3), 0.8), 1.25), 0.07), LEVEL),
]


def rows(leat, photos, scratch, name, augment):
    out = scratch / name
    out.mkdir()
    command = [leat, "epoch", photos, "--transform", "eval", "--size", "224", "--dtype", "u8", "--layout", "nchw", "--no-shuffle",
               "--digest", "off", "--npy", out, "--batches", out / "batches.jsonl"]
    subprocess.run(command + (["--augment", augment] if augment else []), check=True, stdout=subprocess.DEVNULL)
    batches = [json.loads(line) for line in (out / "batches.jsonl").read_text().splitlines()]
    return numpy.concatenate([numpy.load(next(out.glob(f"{b['epoch']}-{b['batch']}-jpg.npy"))) for b in batches])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("photos", type=pathlib.Path)
    arguments.add_argument("--leat", default="build/release/leat")
    given = arguments.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}")
    failed = False
    with tempfile.TemporaryDirectory() as made:
        scratch = pathlib.Path(made)
        plain = torch.from_numpy(rows(given.leat, given.photos, scratch, "plain", None))
        for number, (text, theirs, promise) in enumerate(OPERATIONS):
            ours = rows(given.leat, given.photos, scratch, str(number), text).astype(int)
            expected = numpy.stack([theirs(picture).numpy() for picture in plain]).astype(int)
            apart = numpy.abs(ours - expected)
            equal, level, most = (apart == 0).mean(), (apart <= 1).mean(), apart.max()
            good = equal == 1 if promise == EQUAL else level >= promise
            failed |= not good
            print(f"{text:60} {100 * equal:9.4f} % equal, {100 * level:9.5f} % within 1, {most} at most{'' if good else '   FAILED'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
