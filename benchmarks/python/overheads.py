"""What Python costs on top of leat, each as the median of several rounds.

    python benchmarks/python/overheads.py PHOTOS build/release/leat

pyleat has to be importable, and NumPy. PHOTOS is a folder of pictures; the command loads it too, for the ratio.
"""

import asyncio
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import pyleat as leat

ROUNDS = 5


def median(measure):
    return statistics.median(measure() for _ in range(ROUNDS))


def cpu(who=resource.RUSAGE_SELF):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def nanoseconds(call, count=20_000):
    began = time.thread_time_ns()
    for _ in range(count):
        call()
    return (time.thread_time_ns() - began) / count


def small_batches(folder):
    path = pathlib.Path(folder) / "rows.npy"
    numpy.save(path, numpy.zeros((200_000, 16), dtype=numpy.float32))
    return path


def step_us(path):
    """CPU of the calling thread a batch, of batches that are ready or nearly so."""
    with leat.Loader(path, leat.Array("npy"), batch_size=64, shuffle=False) as loader:
        began, count = time.thread_time(), 0
        for _ in loader:
            count += 1
        return (time.thread_time() - began) / count * 1e6


def async_us(path):
    async def epoch():
        with leat.Loader(path, leat.Array("npy"), batch_size=64, shuffle=False) as loader:
            began, count = time.thread_time(), 0
            async for _ in loader:
                count += 1
            return (time.thread_time() - began) / count * 1e6

    return asyncio.run(epoch())


def mapped_us(path, function):
    """CPU of the process and time a batch, with a function of map_batch, or without."""
    with leat.Loader(path, leat.Array("npy"), batch_size=64, shuffle=False, map_batch=function) as loader:
        began, used, count = time.perf_counter(), time.process_time(), 0
        for _ in loader:
            count += 1
        return (time.process_time() - used) / count * 1e6, (time.perf_counter() - began) / count * 1e6


def import_cost():
    program = (
        "import time\n"
        "def resident():\n"
        "    return int(open('/proc/self/statm').read().split()[1]) * 4\n"
        "before, began = resident(), time.process_time()\n"
        "import pyleat\n"
        "print(time.process_time() - began, resident() - before)\n"
    )
    with tempfile.TemporaryDirectory() as compiled:
        # As pip leaves a package: compiled. Where PYTHONDONTWRITEBYTECODE is set each import compiles it again, which costs 0.6 to 0.8 MiB and
        # half of the time. The first run fills the cache.
        environment = os.environ | {"PYTHONPYCACHEPREFIX": compiled}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        said = [subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True).stdout.split()
                for _ in range(ROUNDS + 1)][1:]
    return tuple(statistics.median(float(each[i]) for each in said) for i in range(2))


def photos_in_python(photos):
    before = cpu()
    with leat.Loader(photos, leat.Image("jpg").random_resized_crop(224).random_flip().normalize(leat.IMAGENET),
                     leat.Label("cls"), batch_size=64, seed=7, epochs=2) as loader:
        pictures = sum(batch.valid_rows for _ in range(2) for batch in loader)
    return pictures / (cpu() - before)


def photos_in_cpp(photos, command):
    before = cpu(resource.RUSAGE_CHILDREN)
    said = subprocess.run([command, "epoch", photos, "--epochs", "2", "--batch-size", "64", "--seed", "7", "--json"],
                          capture_output=True, text=True, check=True).stdout
    pictures = json.loads(said.strip().splitlines()[-1])["samples"]
    return pictures / (cpu(resource.RUSAGE_CHILDREN) - before)


def main(photos, command):
    with tempfile.TemporaryDirectory() as folder:
        path = small_batches(folder)
        with leat.Loader(path, leat.Array("npy"), batch_size=64) as loader:
            batch = next(iter(loader))
            tensor = batch["npy"]
            print(f'batch["x"]: {median(lambda: nanoseconds(lambda: batch["npy"])):.0f} ns')
            print(f"numpy.from_dlpack(): {median(lambda: nanoseconds(lambda: numpy.from_dlpack(tensor))):.0f} ns")
            array = numpy.zeros(4)
            print(f"  of a NumPy array: {median(lambda: nanoseconds(lambda: numpy.from_dlpack(array))):.0f} ns")
        print(f"a batch by for: {median(lambda: step_us(path)):.1f} us of the calling thread's CPU")
        print(f"a batch by async for: {median(lambda: async_us(path)):.1f} us")
        # In turns, since a machine's mood is in both.
        both = [(mapped_us(path, None), mapped_us(path, lambda batch: batch)) for _ in range(ROUNDS)]
        for name, which in (("without map_batch", 0), ("with one that does nothing", 1)):
            used, took = (statistics.median(each[which][i] for each in both) for i in range(2))
            print(f"a batch {name}: {used:.1f} us of the process's CPU, {took:.1f} us")
    seconds, kib = import_cost()
    print(f"import: {seconds * 1e3:.1f} ms of CPU, {kib / 1024:.1f} MiB")
    ratios = [photos_in_python(photos) / photos_in_cpp(photos, command) for _ in range(ROUNDS)]
    print(f"photographs per CPU-second beside the command: {statistics.median(ratios):.3f}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
