"""hub_sets.py OUT: writes sets in the shapes of the Hub's below the new folder OUT, as Parquet, as save_to_disk() and as the cache of map(),
with whichever version of `datasets` is installed. tables.py reads them, and writes its own with the version that it has.
"""

import io
import os
import pathlib
import random
import sys

import datasets
import numpy
import PIL.Image


# Shapes of sets that many people have: CIFAR-10, MNIST, IMDB, MRPC, WikiText, and pictures with captions and boxes.
def sets(rows=300):
    drawn = random.Random("hub")
    pixels = numpy.random.default_rng(1)

    def picture(format, *shape):
        file = io.BytesIO()
        PIL.Image.fromarray(pixels.integers(0, 255, shape, dtype=numpy.uint8)).save(file, format)
        return {"bytes": file.getvalue(), "path": None}

    def text(words):
        return " ".join(f"word{drawn.randrange(500)}" for _ in range(words))

    string, image = datasets.Value("string"), datasets.Image()
    label = datasets.ClassLabel(names=["no", "yes", "perhaps"])
    labels = [i % 3 for i in range(rows)]
    made = {
        "cifar10": ({"img": image, "label": label}, {"img": [picture("PNG", 32, 32, 3) for _ in labels], "label": labels}),
        "mnist": ({"image": image, "label": label}, {"image": [picture("PNG", 28, 28) for _ in labels], "label": labels}),
        "imdb": ({"text": string, "label": label}, {"text": [text(drawn.randrange(10, 300)) for _ in labels], "label": labels}),
        "mrpc": ({"sentence1": string, "sentence2": string, "label": label, "idx": datasets.Value("int32")},
                 {"sentence1": [text(20) for _ in labels], "sentence2": [text(20) for _ in labels], "label": labels,
                  "idx": list(range(rows))}),
        "wikitext": ({"text": string}, {"text": ["" if i % 3 == 0 else f" {text(90)}\n" for i in range(rows)]}),
        "captions": ({"image": image, "caption": string, "objects": {"category": datasets.List(datasets.Value("int64"))}},
                     {"image": [picture("JPEG", 48, 64, 3) if i % 20 else None for i in range(rows)],
                      "caption": [text(8) for _ in labels],
                      "objects": [{"category": [drawn.randrange(80) for _ in range(i % 4)]} for i in range(rows)]}),
    }
    for name, (features, columns) in made.items():
        yield name, datasets.Dataset.from_dict(columns, features=datasets.Features(features))


def write(folder, made):
    folder.mkdir()
    made.to_parquet(folder / "train-00000-of-00001.parquet", batch_size=100)
    made.save_to_disk(folder / "saved", num_shards=2)
    saved = datasets.load_from_disk(folder / "saved")
    saved.map(lambda row, i: {"number": i}, with_indices=True, cache_file_name=os.fspath(folder / "cache-map.arrow"))


if __name__ == "__main__":
    datasets.disable_progress_bars()
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True)
    for name, made in sets():
        write(out / name, made)
