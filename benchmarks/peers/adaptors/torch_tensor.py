#!/usr/bin/env python3
"""PyTorch's DataLoader with torchvision's tensors: torchvision.io decodes, transforms.v2 crop, resize and normalise.

As https://docs.pytorch.org/vision/stable/transforms.html advises for speed: v2, on u8 tensors, antialias on, to float
last; --workers are DataLoader's num_workers.
"""

import torch
import torchvision
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2

import protocol

given = protocol.image_arguments(__doc__)
torch.set_num_threads(1)  # as in torch_pil.py
photos = torchvision.datasets.ImageFolder(
    given.data,
    v2.Compose(
        [
            v2.RandomResizedCrop(protocol.size, scale=protocol.crop_area, ratio=protocol.crop_aspect, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(protocol.mean, protocol.deviation),
        ]
    ),
    loader=lambda path: decode_image(path, mode=ImageReadMode.RGB),
)
loader = torch.utils.data.DataLoader(
    photos,
    batch_size=given.batch_size,
    sampler=torch.utils.data.RandomSampler(photos, num_samples=protocol.images_needed(given)),
    num_workers=given.workers,
)
protocol.measure_images(
    given,
    (pixels for pixels, _labels in loader),
    versions={"torch": torch.__version__, "torchvision": torchvision.__version__},
    settings=f"num_workers={given.workers}, prefetch_factor default, one torch thread a process; antialias=True",
)
