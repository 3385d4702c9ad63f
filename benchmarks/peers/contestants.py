"""Who is measured: a name, what pip installs for it, how it is started, and over what its number of workers is tuned."""

import dataclasses
import json
import pathlib

here = pathlib.Path(__file__).resolve().parent / "adaptors"
wheels = here.parents[2] / "build" / "wheel" / "dist"  # scripts/wheel makes them

# What the jobs are called in a report, and what is counted.
jobs = {
    "f32": "random 224-pixel crop, flip, normalise, f32 NCHW",
    "u8": "random 224-pixel crop, flip, u8 NHWC",
    "eval": "the short side to 224 pixels, centre crop of 224, u8 NHWC",
    "tokens": "12 x 1,024 tokens at random, x and y as i64",
    "sequence": "12 x 1,024 tokens one after another, x and y as i32",
}
image_jobs = ("f32", "u8", "eval")
token_rows = 12
token_length = 1024


@dataclasses.dataclass(frozen=True)
class Amount:
    """Of one run, in batches."""

    warm: int
    batches: int


@dataclasses.dataclass(frozen=True)
class Setting:
    """What all commands are made of."""

    python: pathlib.Path
    leat: pathlib.Path
    photos: pathlib.Path  # a folder of class folders
    photo_count: int
    made: pathlib.Path  # what was made of it: tars, token files
    batch_size: int
    tokens_per_epoch: int


class Contestant:
    """A loader as an adaptor of ours starts it."""

    def __init__(self, name, adaptor, *, jobs, packages, module=None, check=None, workers=None,
                 needs="", prepare=None, scale=1, worker_word="threads", options=()):
        self.name = name
        self.adaptor = adaptor
        self.options = options  # of the adaptor
        self.jobs = jobs
        self.packages = packages  # for pip
        self.check = check or module and f"import {module}"  # Python that fails where it is not installed
        self.workers = workers or (lambda cpus: [1])  # CPUs -> what to try
        self.worker_word = worker_word  # what they are
        self.needs = needs  # of the system, for the message where it is missing
        self.prepare = prepare  # Setting -> a command to run once, or None
        self.scale = scale  # token batches of a run, in proportion: it ends within seconds with any loader

    def command(self, setting, job, workers, amount, look=False):
        command = [setting.python, here / self.adaptor, "--workers", workers, *self.options]
        if job in image_jobs:
            command += ["--data", setting.photos, "--made", setting.made, "--job", job]
            command += ["--batch-size", setting.batch_size, *(["--look"] if look else [])]
            command += ["--warm", amount.warm, "--batches", amount.batches]
        else:
            command += ["--data", setting.made / "tokens.bin"]
            command += ["--warm", amount.warm, "--batches", max(1, int(amount.batches * self.scale))]
        return command

    def measurement(self, text):
        """What the adaptor printed; the same keys for all."""
        return json.loads(text.strip().splitlines()[-1])


class Leat(Contestant):
    """The command itself, which says what it took. Its start, and the end of the last epoch, are in its rates."""

    def __init__(self, name="leat", *, jobs, options=(), scale=1, packed=None):
        super().__init__(name, None, jobs=jobs, packages=(), workers=lambda cpus: [cpus], scale=scale, options=options,
                         prepare=packed and self.pack)
        self.packed = packed  # a tar that is made of the photographs, and read in their place

    def pack(self, setting):
        return [setting.leat, "pack", setting.photos, setting.made / self.packed, "--photos", "fast", "--overwrite"]

    def command(self, setting, job, workers, amount, look=False):
        batches = (amount.warm + amount.batches) * (self.scale if job not in image_jobs else 1)
        command = [setting.leat, "epoch", "--digest", "off", "--json", *self.options]
        if job in image_jobs:
            epochs = max(1, round(batches * setting.batch_size / setting.photo_count))
            command += [setting.made / self.packed if self.packed else setting.photos, "--batch-size", setting.batch_size, "--threads", workers]
            command += ["--dtype", "u8", "--layout", "nhwc"] if job == "u8" else []
        else:
            file = "tokens.bin" if job == "tokens" else "tokens-llmc.bin"
            epochs = max(1, round(batches * token_rows / (setting.tokens_per_epoch // token_length)))
            command += [setting.made / file, "--tokens", token_length, "--batch-size", token_rows]
            command += ["--tokens-as", "i32" if job == "sequence" else "i64"]
        return [*command, "--epochs", epochs]

    def measurement(self, text):
        said = json.loads(text)
        if said["quarantined"] or said.get("error"):
            raise ValueError(f"leat delivered {said['samples']} of {said['planned']} samples: {said.get('error')}")
        reader = said["reader"]
        return {
            "items": said["samples" if set(self.jobs) <= set(image_jobs) else "batches"],
            "batches": said["batches"],
            "seconds": said["seconds"],
            "cpu_s": said["cpu_s"],
            "first_batch_s": said["first_batch_ms"] / 1e3,
            "versions": {},
            "settings": f"{reader['backend']}, O_DIRECT {reader['direct']}, huge pages {reader['huge_pages']}, defaults else",
        }


class LlmC(Contestant):
    """llm.c's loader, compiled against a checkout that the one who measures names."""

    def __init__(self):
        super().__init__("llm.c", "llmc_tokens.c", jobs=("sequence",), packages=(), scale=8)

    def compile(self, checkout, made):
        return ["cc", "-Ofast", "-march=native", "-Wno-unused-result", "-I", checkout, here / self.adaptor,
                "-o", made / "llmc_tokens", "-lm"]

    def command(self, setting, job, workers, amount, look=False):
        return [setting.made / "llmc_tokens", setting.made / "tokens-llmc.bin", amount.warm, int(amount.batches * self.scale)]


def write_beton(setting):
    return [setting.python, here / "ffcv_beton.py", "--data", setting.photos, "--write", setting.made / "photos.beton"]


def write_raw_beton(setting):
    return [*write_beton(setting)[:-1], setting.made / "photos-raw.beton", "--raw"]


def processes(cpus):
    return sorted({0, max(1, cpus // 2), cpus, cpus + 1, 2 * cpus})


def threads(cpus):
    return sorted({max(1, cpus // 2), cpus, cpus + 1, 2 * cpus})


torch = ("torch", "torchvision", "pillow", "numpy")


def ffcv(name, *, prepare, options=()):
    return Contestant(name, "ffcv_beton.py", jobs=("f32",), packages=("torch", "numba", "opencv-python", "ffcv"), module="ffcv",
                      workers=lambda cpus: sorted({max(1, cpus // 2), cpus}),  # Numba refuses more
                      prepare=prepare, options=options,
                      needs="OpenCV's and libjpeg-turbo's headers: apt-get install libopencv-dev libturbojpeg0-dev pkg-config")


all_of_them = [
    # Not "eval": `leat epoch --transform eval` has the short side at 256 pixels.
    Leat(jobs=("f32", "u8")),
    Leat("leat, photo packs", jobs=("f32", "u8"), packed="photo-packs.tar"),
    Contestant("leat from Python", "leat_python.py", jobs=("f32", "u8", "eval"), packages=("--force-reinstall", "--no-deps", "--no-index", "--find-links", str(wheels), "pyleat"),
               check="import numpy, pyleat", workers=lambda cpus: [cpus], needs="NumPy, and a wheel of pyleat: scripts/wheel"),
    Contestant("PyTorch DataLoader, torchvision, PIL", "torch_pil.py", jobs=("f32",), packages=torch,
               module="torchvision", workers=processes,
               worker_word="workers"),
    Contestant("PyTorch DataLoader, torchvision.io, transforms.v2", "torch_tensor.py", jobs=("f32",), packages=torch,
               module="torchvision", workers=processes,
               worker_word="workers"),
    Contestant("WebDataset, PIL", "webdataset_pil.py", jobs=("f32",), packages=(*torch, "webdataset"),
               check="import torchvision, webdataset", workers=processes,
               worker_word="workers"),
    Contestant("SPDL", "spdl_ffmpeg.py", jobs=("f32",), packages=("torch", "spdl"), check="import torch, spdl.io; spdl.io.demux_config()",
               workers=threads, needs="FFmpeg's libraries: apt-get install ffmpeg"),
    Contestant("NVIDIA DALI, CPU", "dali_cpu.py", jobs=("f32", "u8"), packages=("nvidia-dali-cuda130", "numpy"),
               module="nvidia.dali", workers=threads),
    Contestant("TurboLoader", "turboloader_tar.py", jobs=("f32",), packages=("turboloader", "torch"),
               check="import torch, turboloader", workers=lambda cpus: [1, 2, 4],
               worker_word="batches ahead"),
    Contestant("MLX Data", "mlx_data.py", jobs=("f32", "u8"), packages=("mlx-data", "numpy"), module="mlx.data",
               workers=threads),
    Contestant("datago", "datago_files.py", jobs=("eval",), packages=("datago", "numpy"), check="import datago, numpy",
               workers=lambda cpus: sorted({cpus, 2 * cpus, 4 * cpus}), worker_word="tasks"),
    Contestant("tf.data", "tf_data.py", jobs=("f32",), packages=("tensorflow-cpu",), module="tensorflow",
               workers=threads),
    ffcv("FFCV", prepare=write_beton),
    ffcv("FFCV, raw pixels", prepare=write_raw_beton, options=("--raw",)),
    Leat("leat, random windows", jobs=("tokens",), options=("--windows", "random"), scale=8),
    Leat("leat, every token once an epoch", jobs=("tokens",), options=("--windows", "shifted"), scale=8),
    Contestant("nanoGPT's get_batch", "nanogpt.py", jobs=("tokens",), packages=("torch", "numpy"), module="torch", scale=0.15),
    Contestant("TurboLoader, TokenDataLoader", "turboloader_tokens.py", jobs=("tokens",), packages=("turboloader",),
               module="turboloader"),
    Leat("leat, windows in order", jobs=("sequence",), options=("--windows", "tiled", "--no-shuffle"), scale=8),
    LlmC(),
]
