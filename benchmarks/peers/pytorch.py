#!/usr/bin/env python3
"""One run of PyTorch's DataLoader over a folder of class folders, as most people write it: ImageFolder, PIL,
RandomResizedCrop, flip, ToTensor, Normalize. Prints one JSON object.

CPU is that of this process and its workers, from before the loader is made until its workers are gone. Python's start,
the imports and the walk through the folder are left out, in PyTorch's favour.
"""

import argparse
import json
import resource
import time

import PIL
import torch
import torchvision
from torchvision import transforms


def cpu_s():
    own = resource.getrusage(resource.RUSAGE_SELF)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)  # the workers, once they have been waited for
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", help="a folder of class folders")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--size", type=int, default=224)
    given = parser.parse_args()

    # Nothing is computed here but batches: further threads would only wait, at the cost of CPU.
    torch.set_num_threads(1)
    torch.manual_seed(0)
    photos = torchvision.datasets.ImageFolder(
        given.photos,
        transforms.Compose(
            [
                transforms.RandomResizedCrop(given.size),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
            ]
        ),
    )

    cpu_before = cpu_s()
    began = time.perf_counter()
    loader = torch.utils.data.DataLoader(
        photos,
        batch_size=given.batch_size,
        shuffle=True,
        num_workers=given.workers,
        persistent_workers=given.workers > 0,
    )
    images = 0
    for _ in range(given.epochs):
        for pixels, _labels in loader:
            assert pixels.dtype == torch.float32 and pixels.shape[1:] == (3, given.size, given.size)
            images += len(pixels)
    seconds = time.perf_counter() - began
    del loader, pixels, _labels  # ends the workers and waits for them, so that their CPU is counted
    used = cpu_s() - cpu_before

    print(
        json.dumps(
            {
                "images": images,
                "seconds": seconds,
                "cpu_s": used,
                "versions": f"torch {torch.__version__}, torchvision {torchvision.__version__}, "
                f"Pillow {PIL.__version__}",
            }
        )
    )


if __name__ == "__main__":
    main()
