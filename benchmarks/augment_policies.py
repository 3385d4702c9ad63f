#!/usr/bin/env python3
"""What do policies, fused rounding and damage cost beside torchvision with PIL, DALI on the CPU and Albumentations?

    pip install torch torchvision albumentations==2.0.8 opencv-python-headless nvidia-dali-cuda120    # in a scratch environment
    python3 benchmarks/augment_policies.py PHOTOS [--rounds 5] [--images 300] [--only policies|rounding|damage] [--leat build/release/leat]

PHOTOS is a folder of class folders. Three tables come out, medians of the rounds with the lowest and the highest, all CPU time (user and
system), one thread each, the sides in turns, each in a process of its own. Of the libraries the loop alone is measured; leat's run is, less one
of a single batch.

1. From JPEG to f32 [3, 224, 224], normalised: random_resized_crop, flip, and a policy. torchvision v2 takes PIL pictures, as its reference
   recipe does; DALI (where there is a wheel) its auto_aug of the same name.
2. exact and fused rounding of leat, of the same chain to f16.
3. Damage of 224 x 224 pictures of u8 in memory: augment_benchmark beside Albumentations with OpenCV.
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers" / "adaptors"))
from augment_epoch import MEAN, SIDE, STD, files_of, rate_of, rate_of_graph  # noqa: E402

POLICIES = ["rand_augment(2, 9)", "trivial_augment", "auto_augment"]
CHAINS = {"rotate and jitter": "rotate(-30..30, bilinear) color_jitter(0.4, 0.4, 0.4, 0.1)",
          "affine": "affine(-15..15, 0.1, 0.1, 0.9..1.1, -5..5, 0..0, bilinear)",
          "rand_augment(2, 9)": "rand_augment(2, 9, 31, bilinear)"}
DAMAGE = ["gaussian_noise", "downscale", "jpeg_quality", "median_blur", "motion_blur"]


def torchvision_side(files, policy, count):
    import torch
    from PIL import Image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    policies = {"rand_augment(2, 9)": lambda: v2.RandAugment(2, 9), "trivial_augment": v2.TrivialAugmentWide, "auto_augment": v2.AutoAugment}
    steps = v2.Compose([v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip(), policies[policy](), v2.PILToTensor(),
                        v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    torch.manual_seed(1)
    return rate_of(lambda file: steps(Image.open(file).convert("RGB")), files, count)


def dali_side(files, policy, count):
    import nvidia.dali.fn as fn
    from nvidia.dali import pipeline_def, types
    from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment

    apply = {"rand_augment(2, 9)": lambda x: rand_augment.rand_augment(x, n=2, m=9, shape=[SIDE, SIDE], fill_value=0),
             "trivial_augment": lambda x: trivial_augment.trivial_augment_wide(x, shape=[SIDE, SIDE], fill_value=0),
             "auto_augment": lambda x: auto_augment.auto_augment(x, shape=[SIDE, SIDE], fill_value=0)}[policy]

    @pipeline_def(batch_size=50, num_threads=1, device_id=None, seed=1, enable_conditionals=True)
    def graph():
        encoded, _ = fn.readers.file(files=[str(each) for each in files], labels=[0] * len(files), random_shuffle=True, name="reader")
        x = fn.decoders.image_random_crop(encoded, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[0.75, 1.3333])
        x = fn.resize(x, size=[SIDE, SIDE], antialias=True)
        x = apply(fn.flip(x, horizontal=fn.random.coin_flip(probability=0.5)))
        return fn.crop_mirror_normalize(x, dtype=types.FLOAT, output_layout="CHW", mean=[255 * each for each in MEAN],
                                        std=[255 * each for each in STD])

    return rate_of_graph(graph(), 50, count)


def albumentations_side(pictures):
    import albumentations as A
    import cv2
    import numpy

    cv2.setNumThreads(0)
    inputs = list(numpy.fromfile(pictures, dtype=numpy.uint8).reshape(-1, SIDE, SIDE, 3))
    steps = {"gaussian_noise": A.GaussNoise(std_range=(0.3, 0.3), p=1), "downscale": A.Downscale(scale_range=(0.25, 0.25), p=1),
             "jpeg_quality": A.ImageCompression(quality_range=(80, 80), p=1), "median_blur": A.MedianBlur(blur_limit=(5, 5), p=1),
             "motion_blur": A.MotionBlur(blur_limit=(5, 5), allow_shifted=False, angle_range=(30, 30), direction_range=(0, 0), p=1)}
    out = {}
    for name, step in steps.items():
        for each in inputs[:4]:
            step(image=each)
        begin = time.process_time()
        for each in inputs:
            step(image=each)
        out[name] = (time.process_time() - begin) * 1e6 / len(inputs)
    print(json.dumps(out))


def cpu_s(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(each) for each in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(str(each) for each in command)}\n{done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def spread(values, digits=0):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def own_side(library, policy, count, given):
    return [sys.executable, pathlib.Path(__file__).resolve(), given.photos, "--side", library, "--policy", policy, "--images", count]


def leat_images(given, augment, *more):
    # --limit is of each epoch: a run has so many images that starting up is small, and is measured by one batch.
    batch = 50
    epoch = max(1, min(given.images, len(files_of(given.photos))) // batch)
    epochs = max(1, given.images // (epoch * batch))
    common = [given.leat, "epoch", given.photos, "--digest", "off", "--threads", 1, "--batch-size", batch, "--augment", augment, *more]
    start, _ = cpu_s([*common, "--limit", 1, "--epochs", 1])
    took, _ = cpu_s([*common, "--limit", epoch, "--epochs", epochs])
    return (epoch * epochs - 1) * batch / (took - start)


def policies(given):
    sides = ["torchvision"]
    if subprocess.run([sys.executable, "-c", "import nvidia.dali"], stderr=subprocess.DEVNULL).returncode == 0:
        sides.append("dali")
    print("images per CPU-second | leat | " + " | ".join(f"{each} | leat over it" for each in sides))
    for policy in POLICIES:
        rates = {"leat": [], **{each: [] for each in sides}}
        for _ in range(given.rounds):
            rates["leat"].append(leat_images(given, policy))
            for each in sides:
                rates[each].append(json.loads(cpu_s(own_side(each, policy, given.images, given))[1].strip().splitlines()[-1]))
        ours = statistics.median(rates["leat"])
        print(" | ".join([policy, spread(rates["leat"])] +
                         [f"{spread(rates[each])} | {ours / statistics.median(rates[each]):.1f}" for each in sides]), flush=True)


def rounding(given):
    print("ms of CPU for a picture, to f16 | exact | fused | fused over exact")
    for name, chain in CHAINS.items():
        ms = {"exact": [], "fused": []}
        for _ in range(given.rounds):
            for how, of in ms.items():
                of.append(1000 / leat_images(given, chain, "--dtype", "f16", "--rounding", how))
        ratio = statistics.median(ms["fused"]) / statistics.median(ms["exact"])
        print(f"{name} | {spread(ms['exact'], 2)} | {spread(ms['fused'], 2)} | {ratio:.2f}", flush=True)


def damage(given):
    print("us of CPU for a picture | leat | albumentations | leat over it")
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([given.leat, "epoch", given.photos, "--transform", "eval", "--dtype", "u8", "--layout", "nhwc", "--no-shuffle",
                        "--batch-size", "32", "--limit", "1", "--digest", "off", "--npy", directory], check=True, stdout=subprocess.DEVNULL)
        raw = next(each for each in sorted(pathlib.Path(directory).iterdir()) if "jpg" in each.name).read_bytes()
        pictures = pathlib.Path(directory) / "pictures.u8"
        pictures.write_bytes(raw[-32 * SIDE * SIDE * 3:])
        ours, theirs = {each: [] for each in DAMAGE}, {each: [] for each in DAMAGE}
        for _ in range(given.rounds):
            mine = json.loads(cpu_s([given.benchmark, f"--pictures={pictures}", "--rounds=3", "--json", "--plain=off"])[1])
            other = json.loads(cpu_s([sys.executable, pathlib.Path(__file__).resolve(), pictures, "--side", "albumentations"])[1])
            for each in DAMAGE:
                ours[each].append(mine[each])
                theirs[each].append(other[each])
    for each in DAMAGE:
        print(f"{each} | {spread(ours[each])} | {spread(theirs[each])} | {statistics.median(ours[each]) / statistics.median(theirs[each]):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("--leat", type=pathlib.Path, default=pathlib.Path("build/release/leat"))
    parser.add_argument("--benchmark", type=pathlib.Path, default=pathlib.Path("build/release/benchmarks/augment_benchmark"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--only", choices=["policies", "rounding", "damage"])
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--policy", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side == "albumentations":
        return albumentations_side(given.photos)
    if given.side:
        side = {"torchvision": torchvision_side, "dali": dali_side}[given.side]
        print(json.dumps(side(files_of(given.photos), given.policy, given.images)))
        return None

    for name, table in {"policies": policies, "rounding": rounding, "damage": damage}.items():
        if given.only in (None, name):
            table(given)
            print()


if __name__ == "__main__":
    main()
