"""leat for Grain: batches that leat makes, as an IterDataset; samples that Grain reads one by one, as a RandomAccessDataSource.

    from pyleat.grain import IterDataset, Source
    for batch in IterDataset("train", leat.Image().random_resized_crop(224), leat.Label(), batch_size=64, epochs=1): ...
    grain.MapDataset.source(Source("train", leat.Bytes("jpg"))).shuffle(seed=1).map(decode).batch(64)

Of the first all is leat's: reads, decoding, shuffling, ranks. Of the second the order is Grain's, and each sample is loaded by itself
(Loader.batch_at()), which costs some milliseconds on top of the decoding.
"""

import threading

import grain

from ._errors import UsageError
from ._loader import Loader
from ._values import Dataset, Graph
from ._values import open as _open


class _Iterator(grain.DatasetIterator):
    def __init__(self, loader):
        super().__init__()
        self._loader = loader
        self._batches = None

    def __next__(self):
        self._assert_not_closed()
        if self._batches is None:
            if len(self._loader) == 0:
                raise UsageError("an epoch has no batch: batch_size= is above the samples there are, and drop_last= leaves the rest out")
            self._batches = iter(self._loader)
        while True:
            for batch in self._batches:
                return batch
            if self._loader.finished:
                raise StopIteration
            self._batches = iter(self._loader)

    def get_state(self):
        return self._loader.state_dict()

    def set_state(self, state):
        self._batches = None
        self._loader.load_state_dict(state)

    def close(self):
        super().close()
        self._loader.stop()


class IterDataset(grain.IterDataset):
    """Batches of a pyleat.Loader: IterDataset(source, *fields, epochs=1, batch_size=64, ...).

    epochs    how many; without it there is no end
    to        "numpy" (default), "torch" or "jax"
    options   all others of pyleat.Loader. world is that of torchrun, MPI or Slurm: say it where JAX was started otherwise,
              world=(jax.process_index(), jax.process_count())

    The state of its iterators is the loader's state_dict(): of the batch that was handed out last, O(1) to go on from.
    """

    def __init__(self, source, *fields, to="numpy", **options):
        super().__init__()
        self._made_of = (source, fields, {"to": to, **options})

    def __iter__(self):
        source, fields, options = self._made_of
        return _Iterator(Loader(source, *fields, **options))

    def set_slice(self, of, sequential_slice=False):
        """Grain's worker processes divide what they read: leat's threads need none."""
        raise UsageError("mp_prefetch() divides a dataset among processes; leat decodes on threads of this one: leave it out")


class Source:
    """Samples of a dataset by their numbers, as fields make them of epoch 0 without shuffling: a dict of arrays.

    source    a path, a pattern, a list of them, or a Dataset
    options   of pyleat.Loader, but for those that say which rows a batch has

    Any thread may read, and Grain's worker processes: each opens the dataset anew.
    """

    def __init__(self, source, *fields, **options):
        for name in ("batch_size", "global_batch_size", "shuffle", "order", "world", "epochs", "to", "map_batch", "batches_max", "drop_last", "receipts", "record"):
            if name in options:
                raise TypeError(f"Source({name}=): Grain says which samples a batch has, and in which order; IterDataset has all options of a Loader")
        if options.get("on_corrupt") == "skip":
            raise TypeError('Source(on_corrupt="skip"): each number is a sample of its own; "substitute" puts another in its place')
        if any(isinstance(each, Graph) for each in fields):
            raise TypeError("Source(): a Graph has several arrays that belong together; IterDataset gives batches of them")
        self._made_of = (source, fields, options)
        self._samples = source if isinstance(source, Dataset) else _open(source)
        self._lock = threading.Lock()
        self._loader = None

    def _opened(self):
        with self._lock:
            if self._loader is None:
                _, fields, options = self._made_of
                # Batches of one are planned, and none is loaded before it is asked for.
                self._loader = Loader(self._samples, *fields, batch_size=1, shuffle=False, world=(0, 1), **options)
            return self._loader

    def __len__(self):
        return len(self._samples)

    def __getitem__(self, index):
        index = index.__index__()
        if not 0 <= index < len(self):
            raise IndexError(f"sample {index} of a Source of {len(self)}")
        batch = self._opened().batch_at(0, index)
        outputs = {name: each.numpy() for name, each in batch.items()}
        # Of rows of any length the one row is all that there is.
        return {name: (each if f"{name}.offsets" in outputs else each[0]).copy() for name, each in outputs.items()
                if not name.endswith(".offsets") or name.removesuffix(".offsets") not in outputs}

    def __repr__(self):
        source, fields, options = self._made_of
        return f"Source({', '.join([repr(source), *map(repr, fields), *(f'{name}={each!r}' for name, each in options.items())])})"

    def __reduce__(self):
        source, fields, options = self._made_of
        return _made_again, (source, fields, options)


def _made_again(source, fields, options):
    return Source(source, *fields, **options)
