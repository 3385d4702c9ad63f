#!/usr/bin/env python3
"""How many photographs a second do torchvision and DALI put on an NVIDIA GPU, from files to normalised f16 batches?

    benchmarks/peers/gpu.py FOLDER [--rounds 3] [--seconds 4] [--batch-size 256] [--threads 16] [--peers torchvision,dali]
                            [--recipes plain,simclr] [--json FILE] [--markdown FILE]

FOLDER holds class folders of JPEGs. They are read again and again, in a new order each time, so that a small folder will do. Recipes:

    plain    random resized crop to 224 x 224, horizontal flip, ImageNet's mean and deviation; f16 [256, 3, 224, 224] on the GPU
    simclr   the same, and before normalising: ColorJitter(0.4, 0.4, 0.4, 0.1) of 80 %, grey of 20 %, GaussianBlur(23, (0.1, 2)) of 50 %

Peers:

    torchvision          nvJPEG decodes whole batches (io.decode_jpeg); transforms.v2 crop, flip and colour each picture on the GPU
    torchvision-workers  DataLoader's workers decode, crop and flip on the host; transforms.v2 colour each picture on the GPU
    dali                 nvJPEG decodes what the crop needs; all else on the GPU, as in DALI's ResNet-50 example

Nothing is installed: it takes the packages of the Python that runs it. A peer that cannot be imported, or fails, is named with its error.
Each peer and recipe is a process of its own that lives through all rounds and waits while another is measured. Before the first round it
runs for 1.5 s, before the others for 0.7 s. Medians of the rounds with the lowest and the highest. CPU is that of the process and its
workers. GPU memory is what the driver counts for the process after a round, with its CUDA context. Files are in the page cache.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import datetime
import inspect
import json
import multiprocessing
import os
import pathlib
import platform
import queue
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.dont_write_bytecode = True  # Nothing of this is to lie about in the repository.
import processes
import report
import samples
from adaptors import protocol
from environments import last_words, say
from processes import Failed

recipes = ("plain", "simclr")
warm_s_first, warm_s_again = 1.5, 0.7  # The second empties the queues that filled up while others were measured.
ready_s_max = 150  # from the start of a process to its first batch: imports, CUDA, workers
jitter = {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1}  # hue as a share of the circle
jitter_share, grey_share, blur_share = 0.8, 0.2, 0.5
blur_pixels, blur_sigma = 23, (0.1, 2.0)


# What follows, down to work(), runs in the process of a peer. Each peer gives an endless iterator of batches, versions and settings.


def endless(paths):
    while True:
        yield from random.sample(paths, len(paths))


def colour_transforms(v2, recipe):
    """For one picture of u8, which has its own draw of everything."""
    if recipe == "plain":
        return []
    return [
        v2.RandomApply([v2.ColorJitter(**jitter)], jitter_share),
        v2.RandomGrayscale(grey_share),
        v2.RandomApply([v2.GaussianBlur(blur_pixels, blur_sigma)], blur_share),
    ]


def crop_transforms(v2):
    return [
        v2.RandomResizedCrop(protocol.size, scale=protocol.crop_area, ratio=protocol.crop_aspect, antialias=True),
        v2.RandomHorizontalFlip(),
    ]


def normalise(torch, v2):
    """For a batch of u8."""
    return v2.Compose([v2.ToDtype(torch.float16, scale=True), v2.Normalize(protocol.mean, protocol.deviation)])


def torchvision(given, paths, recipe):
    """io.read_file on threads, two batches ahead; io.decode_jpeg of a list on one more thread, a batch ahead; v2 in this one."""
    import torch
    import torchvision
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms import v2

    on_gpu = given.device == "cuda"
    picture = v2.Compose([*crop_transforms(v2), *colour_transforms(v2, recipe)])
    finish = normalise(torch, v2)
    readers = concurrent.futures.ThreadPoolExecutor(given.threads)
    decoder = concurrent.futures.ThreadPoolExecutor(1)
    # Decoding has a stream of its own: in the default stream, which waits for each decoded batch, it would stand in the way of what
    # is done to the batch before.
    side = torch.cuda.Stream() if on_gpu else None

    def read(some):
        return [read_file(path) for path in some]

    def start_reading(order):
        batch = [next(order) for _ in range(given.batch_size)]
        each = -(-len(batch) // given.threads)
        return [readers.submit(read, batch[at : at + each]) for at in range(0, len(batch), each)]

    def decode(reads):
        encoded = [data for some in reads for data in some.result()]
        with torch.cuda.stream(side) if on_gpu else contextlib.nullcontext():
            pixels = decode_jpeg(encoded, mode=ImageReadMode.RGB, device=given.device)
            return pixels, side.record_event() if on_gpu else None

    def batches():
        order = endless(paths)
        reading = collections.deque(start_reading(order) for _ in range(2))
        decoding = decoder.submit(decode, reading.popleft())
        while True:
            pixels, decoded = decoding.result()
            reading.append(start_reading(order))
            decoding = decoder.submit(decode, reading.popleft())
            if on_gpu:
                stream = torch.cuda.current_stream()
                stream.wait_event(decoded)
                for each in pixels:
                    each.record_stream(stream)  # Or the next batch is decoded into memory that this stream has still to read.
            yield finish(torch.stack([picture(each) for each in pixels]))

    settings = f"{given.threads} threads read; io.decode_jpeg of {given.batch_size} with device={given.device}, one batch ahead, in a stream of its own"
    return batches(), {"torch": torch.__version__, "torchvision": torchvision.__version__}, settings


class Crops:
    """A dataset of u8 crops, made on the host. By torchvision.io: it was faster than PIL (results/peers-2026-11-30.md)."""

    def __init__(self, paths):
        from torchvision.transforms import v2

        self.paths = paths
        self.crop = v2.Compose(crop_transforms(v2))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        from torchvision.io import ImageReadMode, decode_jpeg, read_file

        return self.crop(decode_jpeg(read_file(self.paths[index]), mode=ImageReadMode.RGB))


def torchvision_workers(given, paths, recipe):
    import torch
    import torchvision
    from torchvision.transforms import v2

    # Workers that start together end their batches together. Batches of 256 would come sixteen at once, every second or so, which a
    # measurement of some seconds cannot bear. So workers make an eighth, and a batch is put together on the GPU.
    parts = 8 if given.batch_size % 8 == 0 else 1
    crops = Crops(paths)
    loader = torch.utils.data.DataLoader(
        crops,
        batch_size=given.batch_size // parts,
        sampler=torch.utils.data.RandomSampler(crops, num_samples=10**9),
        num_workers=given.threads,
        pin_memory=given.device == "cuda",
    )
    colour = colour_transforms(v2, recipe)
    picture = v2.Compose(colour) if colour else None
    finish = normalise(torch, v2)

    def batches():
        source = iter(loader)  # Starts the workers, by fork(2): before this process uses CUDA.
        while True:
            pixels = torch.cat([next(source).to(given.device, non_blocking=True) for _ in range(parts)])
            yield finish(torch.stack([picture(each) for each in pixels]) if picture else pixels)

    settings = f"num_workers={given.threads}, {given.batch_size // parts} pictures to a worker's batch, prefetch_factor default, pin_memory"
    return batches(), {"torch": torch.__version__, "torchvision": torchvision.__version__}, settings


def dali(given, paths, recipe):
    """docs/examples/use_cases/pytorch/resnet50/main.py of DALI, with f16, the crops of the others, and colour."""
    import nvidia.dali as library
    from nvidia.dali import fn, types
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    on_gpu = given.device == "cuda"
    rest = "gpu" if on_gpu else "cpu"
    # The example's figures, for the largest picture of ImageNet, so that nothing is allocated later.
    hints = {"device_memory_padding": 211025920, "host_memory_padding": 140544512, "preallocate_width_hint": 5980,
             "preallocate_height_hint": 6430} if on_gpu else {}
    dynamic = {"exec_dynamic": True} if "exec_dynamic" in inspect.signature(library.Pipeline.__init__).parameters else {}
    colour = recipe == "simclr"

    def around(middle, reach, applied):
        """A number for each picture: `middle` where `applied` is 0."""
        return middle + applied * fn.random.uniform(range=[-reach, reach])

    @library.pipeline_def(batch_size=given.batch_size, num_threads=given.threads, device_id=0 if on_gpu else None, prefetch_queue_depth=3,
                          enable_conditionals=True, **dynamic)
    def graph():
        encoded, _ = fn.readers.file(files=paths, labels=[0] * len(paths), random_shuffle=True, name="reader")
        pixels = fn.decoders.image_random_crop(
            encoded, device="mixed" if on_gpu else "cpu", output_type=types.RGB, random_aspect_ratio=list(protocol.crop_aspect),
            random_area=list(protocol.crop_area), **hints)
        pixels = fn.resize(pixels, device=rest, resize_x=protocol.size, resize_y=protocol.size, interp_type=types.INTERP_LINEAR, antialias=True)
        if colour:
            # One operator for jitter and grey, over all pictures: those without get arguments that change nothing. In a fixed order,
            # where torchvision draws one.
            applied = fn.random.coin_flip(probability=jitter_share)
            coloured = fn.random.coin_flip(probability=1 - grey_share)
            pixels = fn.color_twist(
                pixels, device=rest, brightness=around(1.0, jitter["brightness"], applied), contrast=around(1.0, jitter["contrast"], applied),
                saturation=coloured * around(1.0, jitter["saturation"], applied), hue=around(0.0, 360 * jitter["hue"], applied))
            sigma = fn.random.uniform(range=list(blur_sigma))
            blurs = fn.random.coin_flip(probability=blur_share, dtype=types.BOOL)
            if blurs:
                pixels = fn.gaussian_blur(pixels, device=rest, window_size=blur_pixels, sigma=sigma)
        return fn.crop_mirror_normalize(
            pixels, device=rest, dtype=types.FLOAT16, output_layout="CHW", crop=(protocol.size, protocol.size),
            mean=[255 * each for each in protocol.mean], std=[255 * each for each in protocol.deviation],
            mirror=fn.random.coin_flip(probability=0.5))

    source = DALIGenericIterator(graph(), ["pixels"], size=-1)
    settings = (f"num_threads={given.threads}, prefetch_queue_depth=3, {'exec_dynamic, ' if dynamic else ''}hw_decoder_load default, "
                "INTERP_LINEAR, antialias")
    return (each[0]["pixels"] for each in source), {"nvidia-dali": library.__version__}, settings


peers = {"torchvision": torchvision, "torchvision-workers": torchvision_workers, "dali": dali}


def cpu_s():
    """Of this process, of children that have ended, and of DataLoader's workers; None where the kernel does not tell of those."""
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    workers = [protocol.running_cpu_s(each.pid) for each in multiprocessing.active_children()]
    return None if 0.0 in workers else sum(each.ru_utime + each.ru_stime for each in own) + sum(workers)


def gpu_memory_bytes():
    try:
        import pynvml

        pynvml.nvmlInit()
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(0))
        return next((each.usedGpuMemory for each in running if each.pid == os.getpid()), None)
    except Exception:  # It is a column that may be empty: no such package, driver or right.
        return None


def look(torch, batch, given):
    """That it is the job; and what the pictures hold, to see that it is the same job."""
    size = protocol.size
    protocol.expect(batch, (given.batch_size, 3, size, size), "float16")
    if batch.device.type != given.device or not batch.is_contiguous():
        sys.exit(f"a batch is on {batch.device}, {'' if batch.is_contiguous() else 'not '}contiguous")
    values = batch.float()
    if not bool(torch.isfinite(values).all()):
        sys.exit("a batch holds what is no number")
    return {"mean": values.mean((0, 2, 3)).tolist(), "deviation": values.std((0, 2, 3)).tolist()}


def work(given, peer, recipe):
    """Says when it is ready; then measures once for each line of standard input: `warm_s seconds`."""
    batches, versions, settings = peers[peer](given, protocol.photos(given.folder)[0], recipe)
    import torch

    synchronise = torch.cuda.synchronize if given.device == "cuda" else lambda: None
    seen = look(torch, next(batches), given)
    gpu = torch.cuda.get_device_name() if given.device == "cuda" else None
    print(json.dumps({"versions": versions, "settings": settings, "look": seen, "gpu": gpu}), flush=True)

    def run(seconds):
        """Ends with a batch: at least `seconds`."""
        images, began = 0, time.monotonic()
        while time.monotonic() - began < seconds:
            images += len(next(batches))
        synchronise()
        return images, time.monotonic() - began

    for line in sys.stdin:
        warm_s, seconds = map(float, line.split())
        run(warm_s)
        before = cpu_s()
        images, took_s = run(seconds)
        after = cpu_s()
        used_s = None if before is None or after is None else after - before
        print(json.dumps({"items": images, "seconds": took_s, "cpu_s": used_s, "gpu_memory_bytes": gpu_memory_bytes() if gpu else None}), flush=True)


def work_and_end(given, peer, recipe):
    code = 0
    try:
        work(given, peer, recipe)
    except BaseException:
        traceback.print_exc()
        code = 1
    for child in multiprocessing.active_children():
        child.terminate()
    sys.stderr.flush()
    os._exit(code)  # Loaders without an end need not agree to stop.


class Process:
    """A peer with a recipe, as the one who asks it to measure sees it."""

    def __init__(self, given, peer, recipe):
        self.peer, self.recipe, self.runs = peer, recipe, []
        self.told = tempfile.TemporaryFile("w+")
        command = [sys.executable, __file__, given.folder, "--work", f"{peer}:{recipe}", "--batch-size", given.batch_size, "--threads",
                   given.threads, "--device", given.device]
        # In a session of its own, with its workers. It ends when its standard input does, so also if this process is killed.
        self.child = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.told,
                                      text=True, start_new_session=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            if line.startswith("{"):  # A library may print, too.
                self.lines.put(json.loads(line))
        self.lines.put(None)

    def answer(self, timeout_s):
        try:
            found = self.lines.get(timeout=timeout_s)
        except queue.Empty:
            raise Failed(f"said nothing for {timeout_s:.0f} s; {self.last_words()}") from None
        if found is None:
            raise Failed(f"ended with {self.child.wait()}: {self.last_words()}")
        return found

    def error_text(self):
        self.told.seek(0)
        return "\n".join(line for line in self.told.read().splitlines() if line.strip(" ^~"))

    def complaints(self):
        """Of one that runs: DALI decodes on the host where it does not find nvJPEG, and says so here alone."""
        return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in self.error_text().splitlines() if "error" in line.lower()]

    def last_words(self):
        return last_words(self.error_text(), 6)  # DALI ends its errors with lines that say nothing.

    def measure(self, warm_s, seconds):
        try:
            print(warm_s, seconds, file=self.child.stdin, flush=True)
        except OSError:
            pass  # It has ended, and answer() says how.
        self.runs.append(self.answer(warm_s + seconds + 60))

    def stop(self):
        processes.end_group(self.child)

    def result(self):
        return {"peer": self.peer, "recipe": self.recipe, **self.ready, "runs": self.runs}


def cpu_s_per_1000(run):
    return None if run["cpu_s"] is None else 1000 * run["cpu_s"] / run["items"]


def spread_of(values):
    return "" if None in values else report.spread_text(values)


def page(results):
    photos = results["photos"]
    lines = [
        f"# From JPEG files to the GPU: torchvision and DALI, {results['date']}",
        "",
        f"- device: {results['gpu']}",
        f"- machine: {results['cpus']} CPUs, kernel {results['kernel']}, Python {results['python']}",
        f"- photographs: {report.photos_text(photos)}, read again and again; page cache warm",
        f"- batches of {results['batch_size']}, f16, on the device; {results['rounds']} rounds of {results['seconds']:g} s, one peer after another in "
        "each; median (lowest..highest)",
        "",
        f"    {results['command']}",
        "",
    ]
    for recipe in recipes:
        rows = [row for row in results["rows"] if row["recipe"] == recipe and row["runs"]]
        if not rows:
            continue
        cells = [[row["peer"], spread_of([report.rate(run) for run in row["runs"]]), spread_of([cpu_s_per_1000(run) for run in row["runs"]]),
                  report.mib(max((run["gpu_memory_bytes"] or 0 for run in row["runs"])) or None)] for row in rows]
        lines += [f"## {recipe}", "", *report.table(["", "images/s", "CPU-s per 1,000 images", "GPU memory, MiB"], cells), ""]
        lines += ["That it is the same job, from the first batch of each:", "",
                  *report.table(["", "mean of R, G, B", "deviation of R, G, B"],
                                [[row["peer"], *(", ".join(f"{value:.2f}" for value in row["look"][key]) for key in ("mean", "deviation"))]
                                 for row in rows]), ""]
    if results["missing"]:
        lines += ["## Not measured", "", *(f"- {name}: {why}" for name, why in results["missing"].items()), ""]
    told = {f"- **{row['peer']}**: {', '.join(' '.join(each) for each in row['versions'].items())}; {row['settings']}"
            + "".join(f"; it says: {line}" for line in row["complaints"]): None for row in results["rows"]}
    return "\n".join([*lines, "## Settings", "", *told, ""])


def write(given, results):
    """After each measurement, so that whatever ends this loses nothing."""
    for file, text in ((given.json, json.dumps(results, indent=1) + "\n"), (given.markdown, page(results))):
        if file:
            new = file.with_name(file.name + ".new")
            new.write_text(text)
            os.replace(new, file)


def measure(given, started, results):
    def give_up(each, problem):
        results["missing"][f"{each.peer} ({each.recipe})"] = str(problem)
        say(f"leaves out {each.peer} ({each.recipe}):", *(f"\n    {line}" for line in [str(problem), *each.error_text().splitlines()[-30:]]))
        each.stop()

    running, deadline = [], time.monotonic() + ready_s_max
    for each in started:
        try:
            each.ready = each.answer(max(1, deadline - time.monotonic()))
        except Failed as problem:
            give_up(each, problem)
            continue
        results["gpu"] = each.ready.pop("gpu")
        each.ready["complaints"] = each.complaints()
        running.append(each)
        say(f"{each.peer} ({each.recipe}) is ready", *(f"\n    {line}" for line in each.complaints()))
    for number in range(given.rounds):
        for each in list(running):
            try:
                each.measure(warm_s_first if number == 0 else warm_s_again, given.seconds)
                run = each.runs[-1]
                cpu = "" if run["cpu_s"] is None else f", {cpu_s_per_1000(run):.2f} CPU-s per 1,000 images"
                say(f"round {number + 1} of {given.rounds}: {each.peer} ({each.recipe}): {report.rate(run):,.0f} images/s{cpu}")
            except Failed as problem:
                give_up(each, problem)
                running.remove(each)
            results["rows"] = [one.result() for one in started if one.runs]
            write(given, results)
    write(given, results)


def some_of(names):
    def parse(text):
        found = text.split(",")
        if set(found) - set(names):
            raise argparse.ArgumentTypeError(f"{text}: there are {', '.join(names)}")
        return found

    return parse


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="a folder of class folders of JPEGs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4, help="that a measurement takes (%(default)s)")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="or workers (one for each CPU)")
    parser.add_argument("--peers", type=some_of(peers), default=list(peers), metavar="A,B", help=", ".join(peers))
    parser.add_argument("--recipes", type=some_of(recipes), default=list(recipes), metavar="A,B", help=", ".join(recipes))
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help=argparse.SUPPRESS)  # cpu: to try the script out
    parser.add_argument("--work", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    given = arguments()
    if not given.folder.is_dir():
        sys.exit(f"gpu: there is no folder {given.folder}")
    if given.work:
        work_and_end(given, *given.work.split(":"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # As Ctrl-C: what it started ends with it.
    protocol.photos(given.folder)  # Ends here where there are none.
    results = {
        "date": datetime.date.today().isoformat(), "command": shlex.join(["benchmarks/peers/gpu.py", *sys.argv[1:]]), "gpu": None,
        "cpus": len(os.sched_getaffinity(0)), "kernel": platform.release(), "python": platform.python_version(),
        "photos": samples.facts(samples.listed(given.folder)),  # which reads them into the page cache
        "batch_size": given.batch_size, "rounds": given.rounds, "seconds": given.seconds, "rows": [], "missing": {},
    }
    started = []
    try:
        for recipe in given.recipes:
            started += [Process(given, peer, recipe) for peer in given.peers]
        measure(given, started, results)
    finally:
        for each in started:
            each.stop()
    print(page(results))
    if not results["rows"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
