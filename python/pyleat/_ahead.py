"""What Loader(map_batch=) does: a function of Python once a batch, on a thread of its own, ahead of the consumer."""

import os
import threading
import time
import weakref

from . import _leat


def _ends(ahead):
    def end(_):
        if (that := ahead()) is not None:
            that.end()
    return end


def _state_of(loader):
    try:
        return _leat.Loader.state_dict(loader)
    except _leat.Error as error:
        return error  # Of those who ask for one.


class Ahead:
    """While the consumer has a batch, another lies ready, and the function makes a third."""

    def __init__(self, loader, function):
        self._function = function
        self._changed = threading.Condition()
        # The thread keeps no loader alive that nobody else has: not while it waits, and not by an error's frames.
        self._loader = weakref.ref(loader, _ends(weakref.ref(self)))
        self._process = os.getpid()
        self._thread = None
        self._is_over = False
        self._ready = []  # At most one: (batch, error, state after it)
        self._bell = None
        self.state = None
        self.calls = 0
        self.seconds = 0.0

    def __del__(self):
        if self._bell is not None:
            os.close(self._bell)

    def next(self):
        """The next batch; None at the end of an epoch."""
        if os.getpid() != self._process:
            return _leat.Loader.next(self._loader())  # It says that a fork came between.
        with self._changed:
            while not self._ready:
                self._start()
                self._changed.wait()
            return self._taken()

    def _try_next(self):
        with self._changed:
            if self._bell is not None:
                try:
                    os.eventfd_read(self._bell)
                except BlockingIOError:
                    pass
            if self._ready:
                return True, self._taken()
            self._start()
            return False, None

    def _descriptor(self):
        with self._changed:
            if self._bell is None:
                self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            # Who ended before there was a bell has rung none.
            if self._ready or self._thread is None:
                os.eventfd_write(self._bell, 1)
            return self._bell

    def end(self):
        """Lets the thread end, after the batch that it is at. It begins again when there is a consumer."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def end_epoch(self):
        """Drops what is ahead."""
        self.end()
        thread = self._thread
        if thread is not None:
            thread.join()
        self._ready.clear()

    def _start(self):
        if self._thread is None:
            if self.state is None:
                # Soon the loader's own place is that of batches which the consumer does not have yet.
                self.state = _state_of(self._loader())
            self._is_over = False
            self._thread = threading.Thread(target=self._run, name="pyleat map_batch")
            self._thread.start()

    def _taken(self):
        batch, error, state = self._ready.pop()
        self._changed.notify_all()
        if error is not None:
            raise error
        self.state = state
        return batch

    def _run(self):
        try:
            while self._puts_another():
                pass
        except BaseException as error:  # Whatever it is, the consumer shall see it.
            self._put(None, error, None)
        finally:
            with self._changed:
                self._thread = None
                self._wake()

    def _puts_another(self):
        came, batch, state = self._next()
        if not came:
            return not self._has_to_end()
        if batch is not None:
            began = time.perf_counter()
            batch = self._function(batch)
            self.seconds += time.perf_counter() - began
            self.calls += 1
            if batch is None:
                raise TypeError("map_batch returned None; it returns what the loop is to get")
        return self._put(batch, None, state) and batch is not None

    def _next(self):
        loader = self._loader()
        try:
            if loader is None or self._has_to_end():
                return False, None, None
            came, batch = loader._next_within_patience()
            if not came:
                return False, None, None
            state = _state_of(loader)
            return True, None if batch is None else loader._given(batch), state
        finally:
            del loader

    def _has_to_end(self):
        # The interpreter waits for this thread before it ends.
        return self._is_over or not threading.main_thread().is_alive()

    def _put(self, batch, error, state):
        """Whether there is to be another."""
        with self._changed:
            while self._ready and not self._has_to_end():
                self._changed.wait(0.05)
            if self._has_to_end():
                return False
            self._ready.append((batch, error, state))
            self._wake()
            return True

    def _wake(self):
        if self._bell is not None:
            os.eventfd_write(self._bell, 1)
        self._changed.notify_all()
