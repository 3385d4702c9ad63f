#!/usr/bin/env python3
"""What does a photograph with its mask and 20 boxes cost in leat, torchvision v2 (tv_tensors) and Albumentations 2.0.8?

    benchmarks/peers/targets.py [--benchmark build/release/benchmarks/targets_benchmark] [--rounds 5] [--images 64] [--out FILE]

The job of targets_benchmark, and its files, in memory: random_resized_crop(512), a flip, an affine warp, floats; a mask of 21 classes (PNG,
palette), boxes and their classes out of JSON, those of less than 4 pixels left out. One thread, samples per CPU-second, each in a process
of its own, in turns; medians of the rounds with the lowest and the highest. Peers are installed into a virtual environment
(~/.cache/leat-peers), or --venv.
"""

import argparse
import io
import json
import pathlib
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # Nothing of this is to lie about in the repository.
import environments
import processes
import report
from environments import say

root = pathlib.Path(__file__).resolve().parent.parent.parent
packages = ["torch", "torchvision", "albumentations==2.0.8", "numpy", "pillow"]
check = "import torch, torchvision, albumentations, cv2, numpy, PIL"
SIDE, MEAN, STD = 512, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def classes_of(mask):
    """A palette's indexes, which are the classes; other readers make colours of them."""
    import numpy
    from PIL import Image

    return numpy.array(Image.open(io.BytesIO(mask)))


def torchvision():
    import torch
    from torchvision import tv_tensors
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    steps = v2.Compose([v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip(), v2.RandomAffine(10, scale=(0.9, 1.1)),
                        v2.ClampBoundingBoxes(), v2.SanitizeBoundingBoxes(min_area=4),
                        v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True), v2.Normalize(MEAN, STD)])

    def load(photo, mask, boxes):
        image = tv_tensors.Image(decode_image(torch.frombuffer(photo, dtype=torch.uint8), mode=ImageReadMode.RGB))
        classes = tv_tensors.Mask(torch.from_numpy(classes_of(mask))[None])
        said = json.loads(boxes)
        made = steps({"image": image, "mask": classes, "labels": torch.tensor(said["classes"]),
                      "boxes": tv_tensors.BoundingBoxes(said["boxes"], format="XYXY", canvas_size=image.shape[-2:], dtype=torch.float32)})
        return made["image"], made["mask"], made["boxes"]

    return load


def albumentations():
    import albumentations as A
    import cv2
    import numpy
    from albumentations.pytorch import ToTensorV2

    cv2.setNumThreads(1)
    steps = A.Compose([A.RandomResizedCrop((SIDE, SIDE)), A.HorizontalFlip(), A.Affine(rotate=(-10, 10), scale=(0.9, 1.1), p=1),
                       A.Normalize(MEAN, STD), ToTensorV2()],
                      bbox_params=A.BboxParams("pascal_voc", label_fields=["classes"], min_area=4))

    def load(photo, mask, boxes):
        image = cv2.cvtColor(cv2.imdecode(numpy.frombuffer(photo, numpy.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
        said = json.loads(boxes)
        made = steps(image=image, mask=classes_of(mask), bboxes=numpy.array(said["boxes"]), classes=said["classes"])
        return made["image"], made["mask"], made["bboxes"]

    return load


def measure(library, folder, images):
    load = {"torchvision": torchvision, "albumentations": albumentations}[library]()
    samples = [[bytearray(pathlib.Path(folder, f"{number}{kind}").read_bytes()) for kind in (".jpg", ".png", ".json")]
               for number in range(len(list(pathlib.Path(folder).glob("*.jpg"))))]
    kept, most = 0, 0
    for each in samples[:8]:
        image, mask, boxes = load(*each)
        most = max(most, int(mask.max()))
        assert tuple(image.shape) == (3, SIDE, SIDE) and tuple(mask.shape)[-2:] == (SIDE, SIDE) and "float32" in str(image.dtype)
        kept += len(boxes)
    assert kept > 0 and 0 < most <= 20, f"{kept} boxes are left, and the highest class is {most}"
    begin = time.process_time()
    for number in range(images):
        load(*samples[number % len(samples)])
    print(images / (time.process_time() - begin))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", type=pathlib.Path, default=root / "build" / "release" / "benchmarks" / "targets_benchmark")
    parser.add_argument("--venv", type=pathlib.Path, default=environments.usual_place)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=64, help="of each peer, in a round")
    parser.add_argument("--out", type=pathlib.Path, help="where the page goes (printed)")
    parser.add_argument("--measure", nargs=2, metavar=("LIBRARY", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        return measure(*given.measure, given.images)
    if not given.benchmark.exists():
        sys.exit(f"targets: there is no {given.benchmark}: cmake --build --preset release --target targets_benchmark")
    if environments.trouble(sys.executable, check) is not None:
        environments.start_again(given.venv, packages, check)
    with tempfile.TemporaryDirectory() as folder:
        commands = {"leat": [given.benchmark, "--rounds=3", f"--write={folder}"]}
        for library in ("torchvision", "albumentations"):
            commands[library] = [sys.executable, __file__, "--images", given.images, "--measure", library, folder]
        rates = {name: [] for name in commands}
        for number in range(given.rounds):
            for name, command in commands.items():
                said = processes.run(command, lambda text: text.strip().splitlines()[-1])
                rates[name].append(float(said.split(": ")[-1].split()[0]))
            say(f"round {number + 1} of {given.rounds}")
    report.give(report.beside_table("samples per CPU-second", rates, lambda name: "leat"), given.out)


if __name__ == "__main__":
    main()
