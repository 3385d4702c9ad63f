# What type checkers see of _values.py: the classes and functions of the module, which it wraps.
from ._leat import (Array as Array, BatchMix as BatchMix, Boxes as Boxes, Bytes as Bytes, Chat as Chat, Clip as Clip, Columns as Columns, Custom as Custom,
                    Dataset as Dataset, Depth as Depth,
                    Field as Field, Graph as Graph, Image as Image, JoinKey as JoinKey, Label as Label, Mask as Mask, Order as Order,
                    Points as Points, Sequence as Sequence, Stack as Stack, Text as Text, Tokenize as Tokenize, Tokenizer as Tokenizer,
                    Tokens as Tokens, balanced as balanced, balanced_cost as balanced_cost, bucketed as bucketed, by as by,
                    by_stem as by_stem, concat as concat, cutmix as cutmix, cut_windows as cut_windows, five_crop as five_crop,
                    from_tensors as from_tensors, join as join, mixed_by as mixed_by, mixup as mixup, mosaic as mosaic,
                    node_local as node_local, open as open, open_coco as open_coco, open_tokens as open_tokens,
                    open_voc as open_voc, open_yolo as open_yolo, packed as packed, repeated as repeated, sequential as sequential,
                    shuffled as shuffled, shuffled_blocks as shuffled_blocks, ten_crop as ten_crop, views as views, weighted as weighted,
                    zip as zip)
