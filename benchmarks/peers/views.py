#!/usr/bin/env python3
"""What do DINO's views and a clip of 16 frames cost in leat from Python, torchvision v2, DALI's CPU operators and a DataLoader with PIL?

    benchmarks/peers/views.py [--wheel build/wheel/dist/pyleat-*.whl] [--leat build/release/leat] [--rounds 5] [--out FILE]

DINO: of each photograph two crops of 224 and eight of 96, flipped, floats, normalised. A clip: 16 of 32 JPEG files of 256 x 256, one crop and
one flip for all of them, floats. One thread; rows per CPU-second of the process behind the first 256 (128 clips), in which threads start and
memory is touched for the first time, each in a process of its own, in turns; medians of the rounds with the lowest and the highest. Files lie in the page cache. Peers are installed into a virtual environment
(~/.cache/leat-peers), or --venv.
"""

import argparse
import io
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # Nothing of this is to lie about in the repository.
import environments
import processes
import report
from environments import say

root = pathlib.Path(__file__).resolve().parent.parent.parent
packages = ["torch", "torchvision", "nvidia-dali-cuda120", "numpy", "pillow"]
check = "import torch, torchvision, nvidia.dali, numpy, PIL"
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SCALES = {"global": (224, 2, (0.4, 1.0)), "local": (96, 8, (0.05, 0.4))}
FRAMES, STORED, CROP, BATCH = 16, 32, 112, 8


def rate(batches, first, count):
    """Rows per CPU-second, behind the first ones."""
    batches, rows = iter(batches), 0
    while rows < first:
        rows += next(batches)
    rows, began = 0, time.process_time()
    while rows < count:
        rows += next(batches)
    print(rows / (time.process_time() - began))


def epochs_of(loader, name, shape):
    while True:
        for batch in loader:
            assert tuple(batch[name].shape[1:]) == shape, batch[name].shape
            yield batch[name].shape[0]


def leat_dino(folder):
    import pyleat as leat

    fields = [leat.views(leat.Image("jpg").random_resized_crop(side, scale).random_flip().normalize(leat.IMAGENET), views, name)
              for name, (side, views, scale) in SCALES.items()]
    return epochs_of(leat.Loader(folder, *fields, batch_size=BATCH, decode_threads=1, digests=False), "global", (2, 3, 224, 224))


def leat_clip(folder):
    import pyleat as leat

    picture = leat.Image("clip").from_("*.jpg").random_resized_crop(CROP).random_flip().normalize(leat.IMAGENET)
    field = leat.Clip(picture, frames=FRAMES, stride=2)
    return epochs_of(leat.Loader(f"{folder}/clips.tar", field, batch_size=BATCH, decode_threads=1, digests=False), "clip",
                     (FRAMES, 3, CROP, CROP))


def photos(folder):
    return sorted(pathlib.Path(folder).rglob("*.jpg"))


def collated(load, items):
    """Batches in this process, as a DataLoader with one worker makes them in that."""
    import torch

    while True:
        for first in range(0, len(items) - BATCH + 1, BATCH):
            rows = [load(item) for item in items[first:first + BATCH]]
            for of_rows in zip(*rows):
                torch.stack(of_rows)
            yield BATCH


def torchvision_dino(folder):
    import torch
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    steps = [(views, v2.Compose([v2.RandomResizedCrop(side, scale=scale, antialias=True), v2.RandomHorizontalFlip(),
                                 v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]))
             for side, views, scale in SCALES.values()]

    def load(path):
        photo = decode_image(torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8), mode=ImageReadMode.RGB)
        return [torch.stack([make(photo) for _ in range(views)]) for views, make in steps]

    return collated(load, photos(folder))


def pil_dino(folder):
    import torch
    from PIL import Image
    from torchvision import transforms as v1

    torch.set_num_threads(1)
    steps = [(views, v1.Compose([v1.RandomResizedCrop(side, scale=scale), v1.RandomHorizontalFlip(), v1.ToTensor(),
                                 v1.Normalize(MEAN, STD)])) for side, views, scale in SCALES.values()]

    def load(path):
        photo = Image.open(io.BytesIO(path.read_bytes())).convert("RGB")
        return [torch.stack([make(photo) for _ in range(views)]) for views, make in steps]

    return collated(load, photos(folder))


def dali_dino(folder):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, exec_dynamic=False)
    def pipeline():
        encoded, _ = fn.readers.file(files=[str(path) for path in photos(folder)], random_shuffle=True)
        photo = fn.decoders.image(encoded, device="cpu", output_type=types.RGB)
        made = []
        for side, views, scale in SCALES.values():
            crops = [fn.crop_mirror_normalize(fn.random_resized_crop(photo, size=[side, side], random_area=scale), dtype=types.FLOAT,
                                              output_layout="CHW", mirror=fn.random.coin_flip(), mean=[255 * each for each in MEAN],
                                              std=[255 * each for each in STD]) for _ in range(views)]
            made.append(fn.stack(*crops))
        return tuple(made)

    made = pipeline()
    made.build()

    def batches():
        while True:
            of_both = made.run()
            assert tuple(of_both[0].as_tensor().shape()) == (BATCH, 2, 3, 224, 224)
            yield BATCH

    return batches()


def clip_files(folder):
    return [[folder / f"{number:03}.{frame:03}.jpg" for frame in range(0, STORED, 2)] for number in range(16)]


def pil_clip(folder):
    """One draw for all frames, each opened and cropped by PIL."""
    import torch
    from PIL import Image
    from torchvision.transforms import RandomResizedCrop
    from torchvision.transforms import functional as F

    torch.set_num_threads(1)

    def load(paths):
        frames = [Image.open(io.BytesIO(path.read_bytes())).convert("RGB") for path in paths]
        box = RandomResizedCrop.get_params(frames[0], (0.08, 1.0), (3 / 4, 4 / 3))
        flip = torch.rand(1).item() < 0.5
        rows = []
        for frame in frames:
            row = F.resized_crop(frame, *box, [CROP, CROP])
            rows.append(F.normalize(F.to_tensor(F.hflip(row) if flip else row), MEAN, STD))
        return [torch.stack(rows)]

    return collated(load, clip_files(pathlib.Path(folder)))


def torchvision_clip(folder):
    import torch
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    steps = v2.Compose([v2.RandomResizedCrop(CROP, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True),
                        v2.Normalize(MEAN, STD)])

    def load(paths):
        frames = [decode_image(torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8), mode=ImageReadMode.RGB)
                  for path in paths]
        return [steps(torch.stack(frames))]

    return collated(load, clip_files(pathlib.Path(folder)))


jobs = {"dino": {"leat": leat_dino, "torchvision": torchvision_dino, "PIL": pil_dino, "DALI": dali_dino},
        "clip": {"leat": leat_clip, "torchvision": torchvision_clip, "PIL": pil_clip}}


def make_data(leat, folder):
    """Photographs, and clips of painted frames: as files, and as the shard that leat reads."""
    import tarfile

    subprocess.run([leat, "make-photos", folder / "photos", "--count", "128"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([leat, "make-photos", folder / "frames", "--count", str(16 * STORED), "--width", "256", "--height", "256"], check=True,
                   stdout=subprocess.DEVNULL)
    clips = folder / "clips"
    clips.mkdir()
    frames = photos(folder / "frames")
    assert len(frames) == 16 * STORED, len(frames)
    with tarfile.open(clips / "clips.tar", "w") as shard:
        for number, frame in enumerate(frames):
            name = clips / f"{number // STORED:03}.{number % STORED:03}.jpg"
            frame.rename(name)
            shard.add(name, name.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=pathlib.Path, help="of pyleat (the newest in build/wheel/dist)")
    parser.add_argument("--leat", type=pathlib.Path, default=root / "build" / "release" / "leat")
    parser.add_argument("--venv", type=pathlib.Path, default=environments.usual_place)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1024, help="of each, in a round")
    parser.add_argument("--out", type=pathlib.Path, help="where the page goes (printed)")
    parser.add_argument("--measure", nargs=3, metavar=("JOB", "LIBRARY", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        job, library, folder = given.measure
        return rate(jobs[job][library](folder), {"dino": 256, "clip": 128}[job], given.rows)
    if environments.trouble(sys.executable, check) is not None:
        environments.start_again(given.venv, packages, check)
    wheels = [given.wheel] if given.wheel else sorted((root / "build/wheel/dist").glob("pyleat-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        sys.exit("views: no wheel of pyleat in build/wheel/dist: scripts/wheel makes it, and --wheel names another")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps", wheels[-1]], check=True)
    with tempfile.TemporaryDirectory() as folder:
        make_data(given.leat, pathlib.Path(folder))
        rates = {f"{job}, {library}": [] for job, libraries in jobs.items() for library in libraries}
        for number in range(given.rounds):
            for name, runs in rates.items():
                job, library = name.split(", ")
                where = pathlib.Path(folder) / {"dino": "photos", "clip": "clips"}[job]
                command = [sys.executable, __file__, "--rows", given.rows, "--measure", job, library, where]
                runs.append(processes.run(command, lambda text: float(text.strip().splitlines()[-1])))
            say(f"round {number + 1} of {given.rounds}")
    report.give(report.beside_table("rows per CPU-second", rates, lambda name: f"{name.split(', ')[0]}, leat"), given.out)


if __name__ == "__main__":
    main()
