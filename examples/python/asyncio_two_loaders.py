"""Trains and validates in one event loop: two loaders load ahead, and no thread waits.

    python examples/python/asyncio_two_loaders.py PHOTOS

Needs pyleat and NumPy.
"""

import asyncio
import sys

import pyleat as leat


async def brightness(name, loader):
    total = rows = 0
    async for batch in loader:
        total += float(batch["jpg"].mean()) * len(batch["jpg"])
        rows += len(batch["jpg"])
        await asyncio.sleep(0)  # The others' turn.
    print(f"{name}: {rows} pictures of brightness {total / rows:.3f}", flush=True)


async def main(photos):
    train, val = leat.open(photos).split(7, [0.8, 0.2])
    options = {"batch_size": 32, "to": "numpy"}
    with (leat.Loader(train, leat.Image().random_resized_crop(64), seed=7, **options) as loads_train,
          leat.Loader(val, leat.Image().resize(72).center_crop(64), shuffle=False, **options) as loads_val):
        await asyncio.gather(brightness("train", loads_train), brightness("val", loads_val))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1]))
