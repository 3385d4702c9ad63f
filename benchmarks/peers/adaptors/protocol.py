"""What every adaptor does alike: its arguments, the job, the clock, and the one line of JSON that it prints.

An adaptor makes an endless iterable of batches, set up as the loader's own documentation advises, and hands it to
measure(). A process of its own runs it, so that what is measured is a loader and nothing that another left behind.

- Time to the first batch counts from the start of the process (LEAT_PEERS_STARTED, of the monotonic clock, where the
  one who starts it says so), with the interpreter and all imports.
- Rates count from one batch, after `--warm` others, to a later one: neither the start nor the end of a loader is in them.
- CPU is user and system time of this process, of the children that have ended (getrusage(2)) and of those that run.
"""

import argparse
import json
import math
import multiprocessing
import os
import pathlib
import resource
import sys
import time

size = 224
crop_area = (0.08, 1.0)
crop_aspect = (3 / 4, 4 / 3)
mean = (0.485, 0.456, 0.406)
deviation = (0.229, 0.224, 0.225)

token_rows = 12
token_length = 1024


def image_arguments(text):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a folder of class folders of photographs")
    parser.add_argument("--made", type=pathlib.Path, help="the folder where run made tars and the like of them")
    parser.add_argument("--job", choices=("f32", "u8", "eval"), default="f32", help="f32 NCHW, normalised; u8 NHWC; eval: that, of a centre crop")
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--look", action="store_true", help="say what the first batches hold, which takes time")
    return batch_arguments(parser)


def token_arguments(text):
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a file of u16 tokens without a header")
    return batch_arguments(parser)


def batch_arguments(parser):
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="threads or processes, as the loader has them")
    parser.add_argument("--warm", type=int, default=10, help="batches before the clock starts")
    parser.add_argument("--batches", type=int, default=50, help="batches that are measured")
    return parser.parse_args()


def photos(folder):
    """The files of a folder of class folders, and the class of each: as torchvision's ImageFolder has them."""
    classes = sorted(each for each in folder.iterdir() if each.is_dir())
    found = [(str(file), label) for label, of in enumerate(classes) for file in sorted(of.iterdir()) if file.is_file()]
    if not found:
        sys.exit(f"{folder} holds no class folders with photographs")
    return [file for file, _ in found], [label for _, label in found]


def images_needed(given):
    return (given.warm + given.batches) * given.batch_size


def random_crop(width, height, random):
    """Left, top, width and height of a crop, drawn as torchvision's RandomResizedCrop draws them: for loaders that crop
    where they are told to."""
    for _ in range(10):
        area = width * height * random.uniform(*crop_area)
        aspect = math.exp(random.uniform(math.log(crop_aspect[0]), math.log(crop_aspect[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    w, h = min(width, round(height * crop_aspect[1])), min(height, round(width / crop_aspect[0]))
    return (width - w) // 2, (height - h) // 2, w, h


def descendants(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        found += children
        for child in children:
            found += descendants(child)
    return found


def running_cpu_s(pid):
    try:
        return time.clock_gettime((~pid << 3) | 2)  # as clock_getcpuclockid(3) has it: a whole process, in ns
    except OSError:
        return 0.0  # It has ended since.


def tree_cpu_s():
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    running = sum(running_cpu_s(pid) for pid in descendants(os.getpid()))
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime + running


def expect(batch, shape, dtype):
    if tuple(batch.shape) != tuple(shape) or dtype not in str(batch.dtype).lower():
        sys.exit(f"a batch is {tuple(batch.shape)} of {batch.dtype}, and should be {tuple(shape)} of {dtype}")


def count(batches, given, rows, first_seen, look_at):
    """Takes `--warm` batches, then `--batches` more, and says what the latter took."""
    source = iter(batches)
    for index in range(given.warm):
        batch = next(source)
        if index == 0:
            first_seen()
        look_at(batch)
    cpu, began, seen = tree_cpu_s(), time.monotonic(), 0
    for _ in range(given.batches):
        batch = next(source)
        seen += rows(batch)
    seconds, used = time.monotonic() - began, tree_cpu_s() - cpu
    return {"items": seen, "batches": given.batches, "seconds": seconds, "cpu_s": used}


def clock_of_first_batch():
    # Without it, from here on.
    started = float(os.environ.get("LEAT_PEERS_STARTED") or time.monotonic())
    seen = []
    return seen, lambda: seen.append(time.monotonic() - started)


def measure_images(given, batches, *, versions, settings):
    """Measures `batches`, whose items have shape and dtype as arrays do and are views of memory in C order. Prints the
    result and ends the process: loaders without an end need not agree to stop."""
    import numpy as np

    shape = (3, size, size) if given.job == "f32" else (size, size, 3)
    dtype = "float32" if given.job == "f32" else "uint8"
    seen, first_seen = clock_of_first_batch()
    looked = []

    def look_at(batch):
        expect(batch, (given.batch_size, *shape), dtype)
        if not looked or given.look:
            array = np.asarray(batch)
            if not array.flags.c_contiguous:
                sys.exit(f"batches are not in C order: {array.strides}")
            channels = (0, 2, 3) if given.job == "f32" else (0, 1, 2)
            # One picture tells enough to see that it is one, a look at all of them whether it is the same job.
            some = array.astype(np.float64) if given.look else array[:1].astype(np.float64)
            looked.append((some.mean(axis=channels), some.std(axis=channels)))

    result = count(batches, given, lambda batch: batch.shape[0], first_seen, look_at)
    if given.look:
        result["look"] = {
            "mean": np.mean([m for m, _ in looked], axis=0).round(4).tolist(),
            "deviation": np.mean([d for _, d in looked], axis=0).round(4).tolist(),
        }
    say({**result, "first_batch_s": seen[0], "versions": versions, "settings": settings})


def measure_tokens(given, batches, *, dtype, versions, settings):
    """Measures `batches` of x and y, as measure_images does."""
    seen, first_seen = clock_of_first_batch()

    def look_at(batch):
        x, y = batch
        for each in (x, y):
            expect(each, (token_rows, token_length), dtype)
        if not bool((x[:, 1:] == y[:, :-1]).all()):
            sys.exit("y is not x shifted by one")

    result = count(batches, given, lambda batch: 1, first_seen, look_at)
    say({**result, "first_batch_s": seen[0], "versions": versions, "settings": settings})


def say(result):
    print(json.dumps(result), flush=True)
    for child in multiprocessing.active_children():
        child.terminate()
        child.join()
    os._exit(0)
