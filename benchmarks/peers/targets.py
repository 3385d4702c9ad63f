#!/usr/bin/env python3
"""What does a photograph with its mask and 20 boxes cost in leat, torchvision v2 (tv_tensors) and Albumentations 2.0.8?

    benchmarks/peers/targets.py [--benchmark build/release/benchmarks/targets_benchmark] [--rounds 5] [--images 64] [--boxes] [--out FILE]

The job of targets_benchmark, and its files, in memory: random_resized_crop(512), a flip, an affine warp, floats; a mask of 21 classes (PNG,
palette), boxes and their classes out of JSON, those of less than 4 pixels left out. One thread, samples per CPU-second, each in a process
of its own, in turns; medians of the rounds with the lowest and the highest. --boxes: the boxes alone, which is
what a picture of 64 x 48 with them takes more than one without; leat's are in what targets_benchmark prints. Peers are installed into a virtual environment
(~/.cache/leat-peers), or --venv.
"""

import argparse
import io
import json
import pathlib
import statistics
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


def torchvision(with_picture=True):
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

    small = tv_tensors.Image(torch.zeros(3, 48, 64, dtype=torch.uint8))
    step_of_both = [v2.RandomResizedCrop(48, antialias=True), v2.RandomHorizontalFlip(), v2.RandomAffine(10, scale=(0.9, 1.1))]
    without = v2.Compose(step_of_both)
    with_them = v2.Compose([*step_of_both, v2.ClampBoundingBoxes(), v2.SanitizeBoundingBoxes()])

    def load_boxes(boxes, with_boxes=True):
        if not with_boxes:
            return without({"image": small})
        said = json.loads(boxes)
        corners = torch.tensor(said["boxes"], dtype=torch.float32) / 10
        return with_them({"image": small, "labels": torch.tensor(said["classes"]),
                          "boxes": tv_tensors.BoundingBoxes(corners, format="XYXY", canvas_size=(48, 64))})["boxes"]

    return load if with_picture else load_boxes


def albumentations(with_picture=True):
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

    small = numpy.zeros((48, 64, 3), numpy.uint8)
    turned = [A.Affine(rotate=(-10, 10), scale=(0.9, 1.1), p=1)]
    steps_of_both = [A.Compose([A.RandomResizedCrop((48, 48)), A.HorizontalFlip(), *turned], bbox_params=params)
                     for params in (A.BboxParams("pascal_voc", label_fields=["classes"], min_area=1), None)]

    def load_boxes(boxes, with_boxes=True):
        if not with_boxes:
            return steps_of_both[1](image=small)
        said = json.loads(boxes)
        return steps_of_both[0](image=small, bboxes=numpy.array(said["boxes"]) / 10, classes=said["classes"])["bboxes"]

    return load if with_picture else load_boxes


def measure_boxes(library, folder, images):
    """Microseconds a sample."""
    samples = [path.read_bytes() for path in pathlib.Path(folder).glob("*.json")]
    load = {"torchvision": torchvision, "albumentations": albumentations}[library](with_picture=False)
    assert any(len(load(each)) for each in samples)

    def seconds(*more):
        begin = time.process_time()
        for number in range(images):
            load(samples[number % len(samples)], *more)
        return time.process_time() - begin

    print(1e6 * (seconds() - seconds(False)) / images)


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
    parser.add_argument("--boxes", action="store_true", help="the boxes alone, of the peers")
    parser.add_argument("--measure", nargs=2, metavar=("LIBRARY", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        return (measure_boxes if given.boxes else measure)(*given.measure, given.images)
    if not given.benchmark.exists():
        sys.exit(f"targets: there is no {given.benchmark}: cmake --build --preset release --target targets_benchmark")
    if environments.trouble(sys.executable, check) is not None:
        environments.start_again(given.venv, packages, check)
    with tempfile.TemporaryDirectory() as folder:
        commands = {"leat": [given.benchmark, "--rounds=3", f"--write={folder}"]}
        for library in ("torchvision", "albumentations"):
            commands[library] = [sys.executable, __file__, "--images", given.images, "--measure", library, folder]
        if given.boxes:
            processes.run(commands.pop("leat"), lambda text: text)  # writes the files
            for command in commands.values():
                command[2:2] = ["--boxes"]
        rates = {name: [] for name in commands}
        for number in range(given.rounds):
            for name, command in commands.items():
                said = processes.run(command, lambda text: text.strip().splitlines()[-1])
                rates[name].append(float(said.split(": ")[-1].split()[0]))
            say(f"round {number + 1} of {given.rounds}")
    if given.boxes:
        return report.give("".join(f"{name}: {statistics.median(of):.0f} µs ({min(of):.0f} to {max(of):.0f}) for the boxes of a sample\n"
                                   for name, of in rates.items()), given.out)
    report.give(report.beside_table("samples per CPU-second", rates, lambda name: "leat"), given.out)


if __name__ == "__main__":
    main()
