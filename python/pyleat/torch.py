"""A DataLoader for programs that are written for PyTorch's: the same arguments, which are taken or explained.

    from pyleat.torch import DataLoader
    train = DataLoader(leat.open("train"), [leat.Image().random_resized_crop(224), leat.Label()], batch_size=64, shuffle=True)
    for batch in train:                       # a dict of tensors
        step(batch["jpg"], batch["cls"])
"""

import warnings

from . import _leat
from ._loader import Loader

# What there is nothing of to set: each is taken as PyTorch's default, and said where it is something else.
_without_effect = {
    "num_workers": (0, "decode threads are of this process; decode_threads= says how many"),
    "prefetch_factor": (None, "prefetch_batches= says how many batches are loaded ahead"),
    "persistent_workers": (False, "threads live as long as the loader"),
    "multiprocessing_context": (None, "there are no processes"),
    "timeout": (0, "read_timeout= says how long a read may take"),
    "pin_memory": (False, "batches are pinned wherever device= is a GPU"),
    "pin_memory_device": ("", "batches are pinned wherever device= is a GPU"),
    "in_order": (True, "batches always come in order"),
}
_refused = {
    "batch_sampler": "order= (pyleat.bucketed, pyleat.packed) says which rows a batch has",
    "collate_fn": "fields collate: Sequence(...).pad(), Text, Columns",
    "worker_init_fn": "there are no workers",
    "generator": "seed= decides everything that is random",
}


class DataLoader(Loader):
    """PyTorch's DataLoader over a Dataset of leat and its fields. Batches are dicts of tensors.

    sampler   an Order of leat
    options   all others of pyleat.Loader
    """

    def __init__(self, dataset, fields, batch_size=1, shuffle=None, sampler=None, *, drop_last=False, to="torch", **options):
        for name, (usual, why) in _without_effect.items():
            if options.pop(name, usual) != usual:
                warnings.warn(f"DataLoader({name}=) has no effect: {why}", stacklevel=2)
        for name, why in _refused.items():
            if options.pop(name, None) is not None:
                raise TypeError(f"DataLoader({name}=) cannot be taken: {why}")
        if sampler is not None:
            if shuffle:
                raise ValueError("sampler and shuffle exclude each other")
            if not isinstance(sampler, _leat.Order):
                raise TypeError(f"DataLoader(sampler=) is an Order of leat (pyleat.weighted, pyleat.balanced), and not {sampler!r}")
            options["order"] = sampler
        super().__init__(dataset, *fields, batch_size=batch_size, shuffle=bool(shuffle), drop_last=drop_last, to=to, **options)
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
