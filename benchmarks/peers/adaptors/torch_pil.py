#!/usr/bin/env python3
"""PyTorch's DataLoader as most people write it: ImageFolder, PIL, torchvision's first transforms.

As https://docs.pytorch.org/vision/stable/transforms.html and the ImageNet example of pytorch/examples have it; --workers
are DataLoader's num_workers. The sampler draws one permutation after another, so that no epoch ends while measured.
"""

import PIL
import torch
import torchvision
from torchvision import transforms

import protocol

given = protocol.image_arguments(__doc__)
# Transforms work on one picture at a time; more threads than the workers themselves would only wait, at the cost of CPU.
torch.set_num_threads(1)
photos = torchvision.datasets.ImageFolder(
    given.data,
    transforms.Compose(
        [
            transforms.RandomResizedCrop(protocol.size, scale=protocol.crop_area, ratio=protocol.crop_aspect),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(protocol.mean, protocol.deviation),
        ]
    ),
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
    versions={"torch": torch.__version__, "torchvision": torchvision.__version__, "Pillow": PIL.__version__},
    settings=f"num_workers={given.workers}, prefetch_factor default, one torch thread a process; antialias is PIL's own",
)
