#!/usr/bin/env python3
"""WebDataset: tar shards, PIL, torchvision's transforms, batched in the workers.

As https://github.com/webdataset/webdataset has it for training: resampled shards, a shuffle buffer of 1,000, .batched()
in the pipeline, WebLoader with batch_size=None; --workers are its num_workers.
"""

import PIL
import torch
import torchvision
import webdataset
from torchvision import transforms

import protocol

given = protocol.image_arguments(__doc__)
torch.set_num_threads(1)  # as in torch_pil.py
train = transforms.Compose(
    [
        transforms.RandomResizedCrop(protocol.size, scale=protocol.crop_area, ratio=protocol.crop_aspect),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(protocol.mean, protocol.deviation),
    ]
)
shards = sorted(str(shard) for shard in given.made.glob("shard-*.tar"))
photos = (
    webdataset.WebDataset(shards, resampled=True, nodesplitter=webdataset.split_by_node)
    .shuffle(1000)
    .decode("pilrgb")
    .to_tuple("jpg", "cls")
    .map_tuple(train, lambda label: label)
    .batched(given.batch_size)
)
loader = webdataset.WebLoader(photos, batch_size=None, num_workers=given.workers)
protocol.measure_images(
    given,
    (pixels for pixels, _labels in loader),
    versions={
        "webdataset": webdataset.__version__,
        "torch": torch.__version__,
        "torchvision": torchvision.__version__,
        "Pillow": PIL.__version__,
    },
    settings=f"{len(shards)} shards, resampled, shuffle(1000), num_workers={given.workers}, batched in the workers",
)
