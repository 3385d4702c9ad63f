"""One run of one loader, in a process of its own; and the memory of a process and all it started."""

import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time

from adaptors.protocol import descendants
from environments import last_words


class Failed(Exception):
    pass


def run(command, measurement, *, timeout_s=900, watch_memory=False):
    """Runs a command and reads what it said. With `watch_memory` the result has `memory_bytes`; watching takes CPU, so a
    run that is timed is not watched."""
    environment = {**os.environ, "LEAT_PEERS_STARTED": repr(time.monotonic())}
    with tempfile.TemporaryFile("w+") as told:
        child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=told, text=True, env=environment, start_new_session=True)
        watch = MemoryWatch(child.pid) if watch_memory else None
        try:
            output, _ = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"ran for more than {timeout_s} s") from None
        finally:
            end_group(child)
            peak = watch.stop() if watch else None
        told.seek(0)
        if child.returncode != 0:
            raise Failed(f"ended with {child.returncode}: {last_words(told.read() or output)}")
    try:
        result = measurement(output)
    except (ValueError, KeyError, IndexError) as problem:
        raise Failed(f"said what cannot be read ({problem}): {last_words(output)}") from None
    if peak is not None:
        result["memory_bytes"] = peak
    return result


def end_group(child):
    """Of the session that run() started: workers may outlive the one that started them."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def anonymous_bytes(text):
    """Of a /proc/PID/smaps_rollup: memory that is a process's own, its share of what it shares, and huge pages. Pages of
    files are left out: the kernel can drop them."""
    counted = ("Pss_Anon", "Pss_Shmem", "Private_Hugetlb", "Shared_Hugetlb")
    total = 0
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key in counted:
            total += int(value.split()[0]) * 1024
    return total


def tree_bytes(pid):
    total = 0
    for each in [pid, *descendants(pid)]:
        try:
            total += anonymous_bytes(pathlib.Path(f"/proc/{each}/smaps_rollup").read_text())
        except (OSError, ValueError):
            continue  # It has ended.
    return total


class MemoryWatch:
    """Looks every 20 ms, and keeps the most that it saw."""

    def __init__(self, pid):
        self.pid = pid
        self.peak = 0
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        while not self.done.wait(0.02):
            self.peak = max(self.peak, tree_bytes(self.pid))

    def stop(self):
        self.done.set()
        self.thread.join()
        return self.peak
