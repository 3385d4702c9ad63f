"""One library's operations of colour, and warps, on 224 x 224 pictures of u8: us of CPU for a picture, on one thread.

    augment_ops.py LIBRARY PICTURES    # torchvision_tensor, torchvision_pil, albumentations, opencv, kornia or dali; a JSON object comes out

PICTURES holds pictures of 224 x 224 x 3 bytes. Factors are those of augment_benchmark.
"""

import json
import sys
import time

import numpy

SIDE = 224


def pictures(path):
    return numpy.fromfile(path, dtype=numpy.uint8).reshape(-1, SIDE, SIDE, 3)


def timed(call, inputs):
    for each in inputs[:4]:
        call(each)
    begin = time.process_time()
    for each in inputs:
        call(each)
    return (time.process_time() - begin) * 1e6 / len(inputs)


def torchvision(inputs, pil):
    import torch
    from PIL import Image
    from torchvision.transforms.v2 import InterpolationMode, functional as F

    torch.set_num_threads(1)
    if pil:
        inputs = [Image.fromarray(each) for each in inputs]
    else:
        inputs = [torch.from_numpy(each).permute(2, 0, 1).contiguous() for each in inputs]
    jitter = lambda x: F.adjust_hue(F.adjust_saturation(F.adjust_contrast(F.adjust_brightness(x, 1.3), 0.8), 1.25), 0.07)
    operations = {
        "brightness": lambda x: F.adjust_brightness(x, 1.3), "contrast": lambda x: F.adjust_contrast(x, 0.8),
        "saturation": lambda x: F.adjust_saturation(x, 1.25), "hue": lambda x: F.adjust_hue(x, 0.07), "color_jitter": jitter,
        "grayscale": lambda x: F.rgb_to_grayscale(x, 3), "gamma": lambda x: F.adjust_gamma(x, 0.8), "invert": F.invert,
        "posterize": lambda x: F.posterize(x, 5), "solarize": lambda x: F.solarize(x, 200), "autocontrast": F.autocontrast,
        "equalize": F.equalize, "sharpness": lambda x: F.adjust_sharpness(x, 2),
        "gaussian_blur": lambda x: F.gaussian_blur(x, 23, 1.3),
        "rotate": lambda x: F.rotate(x, 13, InterpolationMode.BILINEAR),
    }
    return {name: timed(call, inputs) for name, call in operations.items()}


def albumentations(inputs):
    import albumentations as A
    import cv2

    cv2.setNumThreads(0)
    jitter = lambda b, c, s, h: A.ColorJitter(brightness=(b, b), contrast=(c, c), saturation=(s, s), hue=(h, h), p=1)
    operations = {
        "brightness": jitter(1.3, 1, 1, 0), "contrast": jitter(1, 0.8, 1, 0), "saturation": jitter(1, 1, 1.25, 0), "hue": jitter(1, 1, 1, 0.07),
        "color_jitter": jitter(1.3, 0.8, 1.25, 0.07), "grayscale": A.ToGray(p=1), "gamma": A.RandomGamma(gamma_limit=(80, 80), p=1),
        "invert": A.InvertImg(p=1), "posterize": A.Posterize(num_bits=(5, 5), p=1),
        "solarize": A.Solarize(threshold_range=(200 / 255, 200 / 255), p=1), "autocontrast": A.AutoContrast(p=1),
        "equalize": A.Equalize(mode="pil", by_channels=True, p=1), "sharpness": A.Sharpen(alpha=(0.5, 0.5), lightness=(1, 1), p=1),
        "gaussian_blur": A.GaussianBlur(blur_limit=(23, 23), sigma_limit=(1.3, 1.3), p=1),
    }
    return {name: timed(lambda x, call=call: call(image=x)["image"], list(inputs)) for name, call in operations.items()}


def opencv(inputs):
    import cv2

    cv2.setNumThreads(1)
    size = (SIDE, SIDE)
    made = numpy.zeros((SIDE, SIDE, 3), numpy.uint8)  # a new one each time would be page faults for the most part
    last = SIDE - 1
    turned = cv2.getRotationMatrix2D((last / 2, last / 2), 13, 1)
    seen = cv2.getPerspectiveTransform(numpy.float32([[0, 0], [last, 0], [last, last], [0, last]]),
                                       numpy.float32([[20, 9], [200, 12], [210, 190], [5, 215]]))
    operations = {
        "rotate": lambda x: cv2.warpAffine(x, turned, size, made, cv2.INTER_LINEAR),
        "perspective": lambda x: cv2.warpPerspective(x, seen, size, made, cv2.INTER_LINEAR),
    }
    # The first rounds of a process take twice as long.
    return {name: sorted(timed(call, list(inputs)) for _ in range(9))[4] for name, call in operations.items()}


def kornia(inputs):
    import kornia.enhance as E
    import kornia.filters as filters
    import torch

    torch.set_num_threads(1)
    inputs = [torch.from_numpy(each).permute(2, 0, 1).contiguous()[None].float() / 255 for each in inputs]
    operations = {
        "brightness": lambda x: E.adjust_brightness_accumulative(x, 1.3), "contrast": lambda x: E.adjust_contrast(x, 0.8),
        "saturation": lambda x: E.adjust_saturation(x, 1.25), "hue": lambda x: E.adjust_hue(x, 0.07 * 6.2831853),
        "gamma": lambda x: E.adjust_gamma(x, 0.8), "invert": lambda x: E.invert(x), "posterize": lambda x: E.posterize(x, 5),
        "solarize": lambda x: E.solarize(x, 200 / 255), "equalize": E.equalize, "sharpness": lambda x: E.sharpness(x, 2.0),
        "gaussian_blur": lambda x: filters.gaussian_blur2d(x, (23, 23), (1.3, 1.3)),
    }
    found = {}
    for name, call in operations.items():
        try:
            found[name] = timed(call, inputs)
        except Exception as problem:  # what this version of it lacks
            print(f"kornia: {name}: {problem}", file=sys.stderr)
    return found


def dali(inputs):
    import nvidia.dali.fn as fn
    from nvidia.dali import pipeline_def, types

    inputs = list(inputs)
    jitter = {"brightness": 1.3, "contrast": 0.8, "saturation": 1.25, "hue": 0.07 * 360}
    operations = {
        "nothing": lambda x: x, "brightness": lambda x: fn.brightness(x, brightness=1.3), "contrast": lambda x: fn.contrast(x, contrast=0.8),
        "saturation": lambda x: fn.saturation(x, saturation=1.25), "hue": lambda x: fn.hue(x, hue=0.07 * 360),
        "color_jitter": lambda x: fn.color_twist(x, **jitter), "grayscale": lambda x: fn.color_space_conversion(
            x, image_type=types.RGB, output_type=types.GRAY),
        "equalize": lambda x: fn.experimental.equalize(x),
        "gaussian_blur": lambda x: fn.gaussian_blur(x, window_size=23, sigma=1.3),
    }
    found = {}
    for name, call in operations.items():
        try:
            @pipeline_def(batch_size=len(inputs), num_threads=1, device_id=None, prefetch_queue_depth=1)
            def graph():
                return call(fn.external_source(source=lambda: inputs, batch=True, layout="HWC"))

            made = graph()
            made.build()
            made.run()
            begin = time.process_time()
            made.run()
            made.run()
            found[name] = (time.process_time() - begin) * 1e6 / (2 * len(inputs))
        except Exception as problem:  # what this version of it lacks on the CPU
            print(f"dali: {name}: {problem}", file=sys.stderr)
    base = found.pop("nothing")
    return {name: us - base for name, us in found.items()}


def main():
    library, path = sys.argv[1:]
    inputs = pictures(path)
    found = {
        "torchvision_tensor": lambda: torchvision(inputs, False), "torchvision_pil": lambda: torchvision(inputs, True),
        "albumentations": lambda: albumentations(inputs), "opencv": lambda: opencv(inputs), "kornia": lambda: kornia(inputs), "dali": lambda: dali(inputs),
    }[library]()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
