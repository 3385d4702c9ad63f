"""Loader: what `for`, `async for` and `with` need of Python around the module's own."""

import atexit
import sys
import weakref

from . import _leat
from ._errors import UsageError

_alive = weakref.WeakSet()


@atexit.register
def _stop_all():
    # Threads must have ended before the interpreter takes its modules apart.
    for each in list(_alive):
        each.stop()


class Loader(_leat.Loader):
    """Loads batches ahead: Loader(source, *fields, batch_size=64, seed=0, ...).

    source     a path, a pattern, an address, a list of them, or a Dataset
    fields     Image, Label, Text ...
    options    every loader option of C++ by its name; durations in seconds. world is what torchrun, MPI or Slurm say
    to         "numpy", "torch" or "jax": a batch is a dict of that library's own, without a copy. For "torch"
               on a machine with a GPU, pinned=True is PyTorch's pin_memory=True
    map_batch  a function of Python, called once for each batch on a thread of its own, ahead of the loop, which gets
               what it returns. stats() says how often and for how long
    """

    def __init__(self, source, *fields, to=None, map_batch=None, **options):
        if to not in (None, "numpy", "torch", "jax"):
            raise ValueError(f"to= is 'numpy', 'torch' or 'jax', and not {to!r}")
        if to is not None and sys.modules.get(to) is None:
            from importlib.util import find_spec

            if find_spec(to) is None:
                raise ModuleNotFoundError(f"to={to!r} needs {to}, which is not installed here: pip install {to}", name=to)
        if map_batch is not None and not callable(map_batch):
            raise TypeError(f"map_batch= is a function of a batch, and not {map_batch!r}")
        super().__init__(source, *fields, **options)
        self._to = to
        self._epochs_begun = 0
        self._awaited = None
        self._ahead = None
        if map_batch is not None:
            from ._ahead import Ahead  # Its modules, those of threads, are a fifth of the import's time.

            self._ahead = Ahead(self, map_batch)
        _alive.add(self)

    def _given(self, batch):
        if self._to is None:
            return batch
        if self._to == "numpy":
            return {name: each.numpy() for name, each in batch.items()}
        if self._to == "jax":
            from jax.dlpack import from_dlpack
        else:
            from torch import from_dlpack
        return {name: from_dlpack(each) for name, each in batch.items()}

    def begin_epoch(self):
        """Ends the epoch that has begun; iterators of it are over. `for` calls it."""
        self._refuse_while_awaited()
        if self._ahead:
            self._ahead.end_epoch()
        super().begin_epoch()
        if self._ahead:
            self._ahead.state = None  # The place is the epoch's begin.
        self._epochs_begun += 1

    def next(self):
        """The next batch; None at the end of an epoch."""
        self._refuse_while_awaited()
        return self._ahead.next() if self._ahead else super().next()

    def stop(self):
        """Ends the loader. Batches that are held stay valid."""
        super().stop()
        if self._ahead:
            self._ahead.end()

    def state_dict(self, after=None):
        """The place after the batch that was handed out last, as numbers and strings.

        after   a Batch, of those who hold several: what was handed out after it comes again
        """
        if after is not None or self._ahead is None or self._ahead.state is None:
            return super().state_dict(after)
        if isinstance(self._ahead.state, Exception):
            raise self._ahead.state
        return self._ahead.state

    def load_state_dict(self, state):
        """Goes on there. UsageError names what differs, if this loader makes other batches."""
        if self._ahead:
            self._ahead.end_epoch()
            self._ahead.state = None
        super().load_state_dict(state)

    def stats(self):
        """What was done so far: counts, bytes and seconds by name."""
        made = super().stats()
        if self._ahead:
            made["map_batch_calls"] = self._ahead.calls
            made["map_batch_s"] = self._ahead.seconds
        return made

    def _refuse_while_awaited(self):
        if self._awaited is not None and not self._awaited.done():
            raise UsageError("a task awaits this loader's next batch; one at a time may, give each a loader of its own")

    def _refuse_iterator_of(self, epoch):
        if epoch != self._epochs_begun:
            raise UsageError("another loop has begun an epoch of this loader, and this one's is over; give each a loader of its own")

    def __iter__(self):
        self.begin_epoch()
        return self._batches(self._epochs_begun)

    def _batches(self, epoch, raw=False):
        # For each batch as little of Python as can be.
        next_batch = self._ahead.next if self._ahead else super().next
        convert = self._to is not None and self._ahead is None and not raw
        while True:
            if epoch != self._epochs_begun or self._awaited is not None:
                self._refuse_iterator_of(epoch)
                self._refuse_while_awaited()
            batch = next_batch()
            if batch is None:
                return
            if convert:
                batch = self._given(batch)
            yield batch
            del batch  # Held by the consumer alone: leat fills its memory again as soon as that lets it go.

    def __aiter__(self):
        self.begin_epoch()
        return _AsyncEpoch(self, self._epochs_begun)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.stop()

    def __reduce__(self):
        raise TypeError("a Loader has threads and cannot be pickled; pickle its Dataset, fields and options, and make it anew")


class _AsyncEpoch:
    def __init__(self, loader, epoch):
        self._loader = loader
        self._epoch = epoch

    def __aiter__(self):
        return self

    async def __anext__(self):
        from asyncio import get_running_loop  # Of those who await: it takes longer to import than all of this.

        loader = self._loader
        source = loader._ahead or loader
        while True:
            loader._refuse_while_awaited()
            loader._refuse_iterator_of(self._epoch)
            came, batch = source._try_next()
            if came:
                if batch is None:
                    raise StopAsyncIteration
                return batch if loader._ahead else loader._given(batch)
            descriptor = source._descriptor()
            loop = get_running_loop()
            loader._awaited = readable = loop.create_future()
            loop.add_reader(descriptor, lambda: readable.done() or readable.set_result(None))
            try:
                await readable
            finally:
                loop.remove_reader(descriptor)
                loader._awaited = None
