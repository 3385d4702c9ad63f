"""A DataLoader for programs that are written for PyTorch's: the same arguments, which are taken or explained.

    from pyleat.torch import DataLoader
    train = DataLoader(leat.open("train"), [leat.Image().random_resized_crop(224), leat.Label()], batch_size=64, shuffle=True)
    for batch in train:                       # a dict of tensors
        step(batch["jpg"], batch["cls"])

Beside accelerate it is a loader that is prepared already: each rank has its own rows, batches are on the accelerator's device, and
gradients are applied after an epoch's last batch. Accelerator().prepare() returns it as it is, register_for_checkpointing() keeps its state.
"""

import sys
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
    "pin_memory_device": ("", "memory is pinned for every GPU"),
    "in_order": (True, "batches always come in order"),
}
_refused = {
    "batch_sampler": "order= (pyleat.bucketed, pyleat.packed) says which rows a batch has",
    "collate_fn": "fields collate: Sequence(...).pad(), Text, Columns",
    "worker_init_fn": "there are no workers",
    "generator": "seed= decides everything that is random",
}

# Of a mesh of devices: ranks that differ in another axis than these have the same batches.
_axes_of_data = {"dp_replicate", "dp_shard", "dp", "fsdp"}


def _accelerate():
    """The states of accelerate, where an Accelerator was made; else None."""
    states = sys.modules.get("accelerate.state")
    return states if states is not None and states.is_initialized() else None


def _world_of(states):
    mesh = getattr(states.AcceleratorState(), "device_mesh", None)
    shared = [name for axis, name in enumerate(mesh.mesh_dim_names or ()) if name not in _axes_of_data and mesh.size(axis) > 1] if mesh else []
    if shared:
        raise ValueError(f"DataLoader(world=) is missing: ranks that differ in {', '.join(shared)} alone have the same batches, and world=(rank, "
                         "size) counts them as one")
    processes = states.PartialState()
    return processes.process_index, processes.num_processes


class DataLoader(Loader):
    """PyTorch's DataLoader over a Dataset of leat and its fields. Batches are dicts of tensors.

    sampler   an Order of leat
    options   all others of pyleat.Loader. world is that of accelerate, where there is an Accelerator
    """

    # What accelerate asks of a loader that it has prepared (accelerate.data_loader.DataLoaderStateMixin). No row comes twice, so that there is
    # no remainder to be dropped.
    _is_accelerate_prepared = True
    end_of_dataloader = False
    remainder = 0

    def __init__(self, dataset, fields, batch_size=1, shuffle=None, sampler=None, *, drop_last=False, to="torch", **options):
        if "pin_memory" in options:
            options.setdefault("pinned", bool(options.pop("pin_memory")))
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
        if "world" not in options and (states := _accelerate()) is not None:
            options["world"] = _world_of(states)
        super().__init__(dataset, *fields, batch_size=batch_size, shuffle=bool(shuffle), drop_last=drop_last, to=to, **options)
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last

    @property
    def sampler(self):
        raise AttributeError("a DataLoader of leat has no sampler: order= and seed= say which rows an epoch has, and load_state_dict() goes on "
                             "in the middle of one")

    batch_sampler = sampler

    def _batches(self, epoch):
        states = _accelerate()
        return super()._batches(epoch) if states is None else self._accelerated(epoch, states)

    def _accelerated(self, epoch, states):
        from accelerate.utils import send_to_device

        gradients, device = states.GradientState(), states.PartialState().device
        self.end_of_dataloader = False
        gradients._add_dataloader(self)
        try:
            for batch in super()._batches(epoch, raw=True):
                if self._ahead is None:
                    passed, batch = batch.index + 1, self._given(batch)
                else:
                    passed = self.state_dict()["batch"]
                self.end_of_dataloader = passed in (0, len(self))
                yield send_to_device(batch, device)
                del batch
        finally:
            gradients._remove_dataloader(self)
