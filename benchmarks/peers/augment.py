#!/usr/bin/env python3
"""What does colour cost in leat, torchvision v2 (tensors and PIL), Albumentations 2.0.8, Kornia and DALI's CPU operators?

    benchmarks/peers/augment.py [--data FOLDER] [--rounds 5] [--operations-only] [--leat build/release/leat] [--out FILE]

Operations: 64 photographs of 224 x 224, u8, one thread, CPU time of a picture; leat's by benchmarks/augment_benchmark. Then SimCLR's
recipe from JPEG to f32, images per CPU-second, and the same without colour. Each in a process of its own, in turns; medians of the rounds with
the lowest and the highest. `run --jobs augment` does this. Peers are installed into a virtual environment (~/.cache/leat-peers), or --venv.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True  # Nothing of this is to lie about in the repository.
import environments
import processes
from environments import say

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
libraries = ["torchvision_tensor", "torchvision_pil", "albumentations", "opencv", "kornia", "dali"]
packages = ["torch", "torchvision", "albumentations==2.0.8", "kornia", "nvidia-dali-cuda120", "numpy", "pillow"]
check = "import torch, torchvision, albumentations, kornia, nvidia.dali, numpy, PIL"
crops = 64


def arguments(given):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, help="a folder of photographs (made)")
    parser.add_argument("--leat", type=pathlib.Path, default=root / "build" / "release" / "leat")
    parser.add_argument("--benchmark", type=pathlib.Path, help="augment_benchmark (beside leat, in benchmarks/)")
    parser.add_argument("--venv", type=pathlib.Path, default=environments.usual_place)
    parser.add_argument("--made", type=pathlib.Path, default=environments.cache / "leat-peers-data" / "augment")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=640, help="of the recipe, in a run")
    parser.add_argument("--operations-only", action="store_true")
    parser.add_argument("--recipe-only", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, help="where the page goes (printed)")
    return parser.parse_args(given)


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


def pictures(given):
    """The first photographs as the trainer's crops: one file of u8."""
    import glob

    out = given.made / "crops"
    out.mkdir(parents=True, exist_ok=True)
    file = given.made / "pictures.u8"
    subprocess.run([given.leat, "epoch", given.data, "--transform", "eval", "--size", "224", "--dtype", "u8", "--layout", "nhwc",
                    "--no-shuffle", "--batch-size", str(crops), "--limit", "1", "--digest", "off", "--npy", out],
                   check=True, stdout=subprocess.DEVNULL)
    raw = pathlib.Path(sorted(glob.glob(str(out / "*-jpg.npy")))[0]).read_bytes()
    file.write_bytes(raw[-crops * 224 * 224 * 3:])
    return file


def leat_recipe(given, *more):
    # How many images, and the CPU-seconds of the whole process.
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([given.leat, "epoch", given.data, "--transform", "train", "--digest", "off", "--threads", "1", "--batch-size", "64",
                           "--epochs", "2", *more], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    images = 2 * sum(1 for each in given.data.rglob("*") if each.is_file())
    del done
    return images / cpu_s


def spread(runs):
    return f"{statistics.median(runs):,.0f} ({min(runs):,.0f} to {max(runs):,.0f})"


def operations_page(found):
    names = list(found["leat"][0])
    lines = ["us of CPU for a picture, median (lowest to highest); the last column is leat over the best other.", "",
             "| | leat | " + " | ".join(each.replace("_", " ") for each in libraries if found[each]) + " | |",
             "| --- |" + " --- |" * (2 + sum(1 for each in libraries if found[each]))]
    for name in names:
        own = [run[name] for run in found["leat"]]
        cells, best = [], None
        for library in libraries:
            if not found[library]:
                continue
            runs = [run[name] for run in found[library] if name in run]
            cells.append(spread(runs) if runs else "")
            if runs:
                best = min(best or 1e9, statistics.median(runs))
        ratio = f"{statistics.median(own) / best:.2f}" if best else ""
        lines.append(f"| {name} | {spread(own)} | " + " | ".join(cells) + f" | {ratio} |")
    return lines


def main(words=None):
    given = arguments(words)
    given.benchmark = given.benchmark or given.leat.parent / "benchmarks" / "augment_benchmark"
    for program in (given.leat, given.benchmark):
        if not program.exists():
            sys.exit(f"augment: there is no {program}: cmake --build --preset release --target leat_tool augment_benchmark")
    python = environments.make(given.venv)
    if environments.trouble(python, check) is not None:
        say(f"installs {' '.join(packages)}")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], check=True)
    given.made.mkdir(parents=True, exist_ok=True)
    if given.data is None:
        given.data = given.made / "photos"
        if not given.data.exists():
            subprocess.run([given.leat, "make-photos", given.data, "--count", "400"], check=True, stdout=subprocess.DEVNULL)
    versions = subprocess.run([python, "-m", "pip", "list", "--format", "freeze"], stdout=subprocess.PIPE, text=True, check=True).stdout
    wanted = re.compile(r"^(torch|torchvision|albumentations|kornia|nvidia-dali.*|pillow|opencv.*)==", re.IGNORECASE)
    page = ["# Colour: leat beside its peers", "", ", ".join(line for line in versions.splitlines() if wanted.match(line)), ""]

    if not given.recipe_only:
        file = pictures(given)
        found = {name: [] for name in ["leat", *libraries]}
        for number in range(given.rounds):
            found["leat"].append(processes.run([given.benchmark, f"--pictures={file}", "--json", "--plain=off", "--rounds=5"], last_json))
            for library in libraries:
                try:
                    found[library].append(processes.run([python, here / "adaptors" / "augment_ops.py", library, file], last_json))
                except processes.Failed as problem:
                    say(f"leaves out {library}: {problem}")
            say(f"round {number + 1} of {given.rounds} of operations")
        page += operations_page(found) + [""]

    if not given.operations_only:
        rates = {}
        for number in range(given.rounds):
            for name, run in {
                "leat": lambda: leat_recipe(given, "--augment", "simclr"), "leat without colour": lambda: leat_recipe(given),
                **{f"{library}{' without colour' if plain else ''}": lambda library=library, plain=plain: processes.run(
                    [python, here / "adaptors" / "augment_epoch.py", library, given.data, str(given.images), *(["--plain"] if plain else [])],
                    last_json)["per_cpu_s"] for library in ("torchvision", "dali") for plain in (False, True)},
            }.items():
                try:
                    rates.setdefault(name, []).append(run())
                except processes.Failed as problem:
                    say(f"leaves out {name}: {problem}")
            say(f"round {number + 1} of {given.rounds} of the recipe")
        page += ["SimCLR's recipe from JPEG to f32, one decode thread: images per CPU-second.", "", "| | images per CPU-second | leat with it over this |",
                 "| --- | --- | --- |"]
        own = statistics.median(rates["leat"])
        page += [f"| {name} | {spread(runs)} | {own / statistics.median(runs):.2f} |" for name, runs in rates.items()]
    text = "\n".join(page) + "\n"
    if given.out:
        given.out.write_text(text)
        say(f"wrote {given.out}")
    else:
        print(text)


if __name__ == "__main__":
    main()
