"""Loads batches for training: io_uring reads, decoding in place, tensors by DLPack.

    import pyleat as leat, torch
    train = leat.Loader("train-{000..127}.tar",
                        leat.Image("jpg").random_resized_crop(224).random_flip().normalize(leat.IMAGENET),
                        leat.Label("cls"), batch_size=256, seed=7)
    for batch in train:                      # one epoch; the next `for` is the next epoch
        x, y = torch.from_dlpack(batch["jpg"]), torch.from_dlpack(batch["cls"])
"""

from ._errors import (CallbackError, CancelledError, ChangedError, CorruptError, DeviceError, Error, FormatError, LimitError,
                      NotFoundError, PermissionDeniedError, ReadError, UnsupportedError, UsageError)
from ._leat import Batch, Mark, PictureGeometry, Tensor, read_column
from ._leat import __version__ as __version__
from ._loader import Loader
from ._values import (Array, BatchMix, Boxes, Bytes, Chat, Clip, Columns, Custom, Dataset, Depth, Field, Graph, Image, JoinKey, Label, Mask, Order, Points,
                      Sequence, Stack, Text, Tokenize, Tokenizer, Tokens, balanced, balanced_cost, bucketed, by, by_stem, concat, cutmix,
                      cut_windows, five_crop, from_tensors, join, mixed_by, mixup, mosaic, node_local, open_coco, open_tokens, open_voc, open_yolo, packed, repeated,
                      sequential, shuffled, shuffled_blocks, ten_crop, views, weighted)
from ._values import open as open, zip as zip

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CLIP = ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))

# As a list, which type checkers read. Not open and zip, which would take the builtins' place.
__all__ = ["Array", "Batch", "BatchMix", "Boxes", "Bytes", "CLIP", "CallbackError", "CancelledError", "ChangedError", "Chat", "Clip",
           "Columns", "CorruptError", "Custom", "Dataset", "Depth", "DeviceError", "Error", "Field", "FormatError", "Graph", "IMAGENET",
           "Image", "JoinKey", "Label", "LimitError", "Loader", "Mark", "Mask", "NotFoundError", "Order", "PermissionDeniedError",
           "PictureGeometry", "Points", "ReadError", "Sequence", "Stack", "Tensor", "Text", "Tokenize", "Tokenizer", "Tokens",
           "UnsupportedError", "UsageError", "balanced", "balanced_cost", "bucketed", "by", "by_stem", "concat", "cut_windows", "cutmix",
           "five_crop", "from_tensors", "join", "mixed_by", "mixup", "mosaic", "node_local", "open_coco", "open_tokens", "open_voc",
           "open_yolo", "packed", "read_column", "repeated", "sequential", "shuffled", "shuffled_blocks", "ten_crop", "views", "weighted"]
