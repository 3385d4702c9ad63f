"""SimCLR's recipe from JPEG to f32 on one thread: images per CPU-second.

    augment_epoch.py LIBRARY FOLDER COUNT [--plain]    # torchvision or dali; --plain: crop, flip and normalise alone. JSON comes out
"""

import json
import pathlib
import sys
import time

SIDE = 224
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def files_of(folder):
    return sorted(each for each in pathlib.Path(folder).rglob("*") if each.suffix.lower() in (".jpg", ".jpeg"))


def rate_of(load, files, count):
    """Images per CPU-second of a function that takes a file."""
    for i in range(20):
        load(files[i % len(files)])
    begin = time.process_time()
    for i in range(count):
        load(files[i % len(files)])
    return count / (time.process_time() - begin)


def rate_of_graph(made, batch, count):
    """The same of a pipeline of DALI's."""
    made.build()
    made.run()
    begin = time.process_time()
    batches = max(1, count // batch)
    for _ in range(batches):
        made.run()
    return batch * batches / (time.process_time() - begin)


def torchvision(files, count, plain):
    import torch
    from torchvision.io import ImageReadMode, decode_image, read_file
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    colour = [] if plain else [v2.RandomApply([v2.ColorJitter(0.8, 0.8, 0.8, 0.2)], 0.8), v2.RandomGrayscale(0.2),
                               v2.RandomApply([v2.GaussianBlur(23, (0.1, 2.0))], 0.5)]
    steps = v2.Compose([v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip(), *colour,
                        v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    return rate_of(lambda file: steps(decode_image(read_file(str(file)), mode=ImageReadMode.RGB)), files, count)


def dali(files, count, plain):
    import nvidia.dali.fn as fn
    from nvidia.dali import pipeline_def, types

    def applied(probability, changed, same):
        mask = fn.cast(fn.random.coin_flip(probability=probability), dtype=types.BOOL)
        return changed * mask + same * (mask ^ True)

    @pipeline_def(batch_size=64, num_threads=1, device_id=None, seed=1)
    def graph():
        encoded, _ = fn.readers.file(files=[str(each) for each in files], labels=[0] * len(files), random_shuffle=True, name="reader")
        x = fn.decoders.image_random_crop(encoded, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[0.75, 1.3333])
        x = fn.resize(x, size=[SIDE, SIDE], antialias=True)
        if not plain:
            uniform = fn.random.uniform
            jittered = fn.color_twist(x, brightness=uniform(range=[0.2, 1.8]), contrast=uniform(range=[0.2, 1.8]),
                                      saturation=uniform(range=[0.2, 1.8]), hue=uniform(range=[-72.0, 72.0]))
            x = fn.cast(applied(0.8, jittered, x), dtype=types.UINT8)
            x = fn.hsv(x, saturation=fn.cast(fn.random.coin_flip(probability=0.8), dtype=types.FLOAT))
            blurred = fn.gaussian_blur(x, window_size=23, sigma=uniform(range=[0.1, 2.0]))
            x = fn.cast(applied(0.5, blurred, x), dtype=types.UINT8)
        return fn.crop_mirror_normalize(x, dtype=types.FLOAT, output_layout="CHW", mean=[255 * each for each in MEAN],
                                        std=[255 * each for each in STD], mirror=fn.random.coin_flip(probability=0.5))

    return rate_of_graph(graph(), 64, count)


def main():
    library, folder, count = sys.argv[1:4]
    rate = {"torchvision": torchvision, "dali": dali}[library](files_of(folder), int(count), "--plain" in sys.argv)
    print(json.dumps({"per_cpu_s": rate}))


if __name__ == "__main__":
    main()
