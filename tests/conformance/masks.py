"""masks.py MASK_PIXELS [COUNT]: paints random polygons and run lengths with pycocotools and with leat (by the program MASK_PIXELS), and
compares every pixel. COUNT pictures, 1,000 unless it is given, of one to four objects each, later ones over earlier ones.

Exits 1 where a pixel differs, and prints the picture.
"""

import json
import random
import subprocess
import sys

import numpy
from pycocotools import mask as coco


def polygon(rng, height, width):
    """Corners as annotators leave them, in hundredths; some on whole pixels, some outside, some twice."""
    kind = rng.randrange(4)
    count = rng.choice([3, 3, 4, 5, 8, 20, 100])
    x, y, size = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(0.2, max(width, height))
    places = []
    for _ in range(count):
        if kind == 0:  # anywhere, and across itself
            at = [rng.uniform(-3, width + 3), rng.uniform(-3, height + 3)]
        elif kind == 1:  # on whole and half pixels
            at = [rng.randrange(2 * width + 1) / 2, rng.randrange(2 * height + 1) / 2]
        elif kind == 2:  # far outside
            at = [rng.uniform(-4 * width, 5 * width), rng.uniform(-4 * height, 5 * height)]
        else:
            at = [x + rng.uniform(-size, size), y + rng.uniform(-size, size)]
        places += [round(value, rng.choice([0, 1, 2, 2, 6])) for value in at]
        if rng.random() < 0.05:
            places += places[-2:]
    return places


def runs(rng, height, width):
    counts, left = [], height * width
    while left:
        run = min(left, rng.choice([0, 1, rng.randrange(1, height + 2), rng.randrange(1, 3 * height + 2)]))
        counts.append(run)
        left -= run
    return {"size": [height, width], "counts": counts}


def main():
    program = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    rng = random.Random(7)
    lines, expected = [], []
    for _ in range(count):
        height, width = rng.choice([(1, 1), (1, 9), (7, 1), (48, 64), (37, 53), (120, 90), (rng.randrange(1, 200), rng.randrange(1, 200))])
        objects, categories = [], []
        mask = numpy.zeros((height, width), numpy.uint8)
        for number in range(1, rng.randrange(2, 6)):
            kind = rng.randrange(3)
            if kind == 0:
                shape = runs(rng, height, width)
                coded = coco.frPyObjects(shape, height, width)
            elif kind == 1:
                coded = coco.frPyObjects(runs(rng, height, width), height, width)
                shape = {"size": [height, width], "counts": coded["counts"].decode()}
            else:
                shape = [polygon(rng, height, width) for _ in range(rng.randrange(1, 4))]
                coded = coco.merge(coco.frPyObjects(shape, height, width))
            mask[coco.decode(coded) != 0] = number
            objects.append(shape)
            categories.append(number)
        lines.append(f"{height} {width} " + json.dumps({"categories": categories, "iscrowd": [0] * len(objects), "segmentation": objects}))
        expected.append(mask)
    done = subprocess.run([program], input="\n".join(lines).encode(), capture_output=True)
    if done.returncode != 0:
        sys.exit(f"masks: {done.stderr.decode()}")
    at, faults = 0, 0
    for line, mask in zip(lines, expected):
        got = numpy.frombuffer(done.stdout, numpy.uint8, mask.size, at).reshape(mask.shape)
        at += mask.size
        if not (got == mask).all():
            faults += 1
            if faults <= 3:
                print(f"masks: {int((got != mask).sum())} pixels differ of {line[:2000]}")
    print(f"masks: {count} pictures, {at:,} pixels, of {sum(int((mask != 0).sum()) for mask in expected):,} painted; {faults} differ")
    sys.exit(faults != 0)


main()
