#!/usr/bin/env python3
"""Batches of leat as arrays of NumPy and tensors of PyTorch, without a copy: DLPack carries them.

    from_dlpack.py LIBRARY SOURCE [--device host|cuda:N]

LIBRARY is examples/from_dlpack.cpp as it was built (build/release/examples/libleat_from_dlpack.so), SOURCE a folder of class
folders or tar shards. Uses what is installed of NumPy and PyTorch, and leaves with 77 where neither is.
"""

import argparse
import ctypes
import sys
from ctypes import PYFUNCTYPE, c_char_p, c_int, c_int32, c_ssize_t, c_uint32, c_void_p, py_object, pythonapi

# Not by pythonapi's attributes, which everybody in the process shares.
new_capsule = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))
capsule_is = PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", pythonapi))
capsule_pointer = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", pythonapi))


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned, as far as the deleter."""

    _fields_ = [("version", c_uint32 * 2), ("manager_ctx", c_void_p), ("deleter", ctypes.CFUNCTYPE(None, c_void_p))]


class Unversioned(ctypes.Structure):
    """DLManagedTensor; 48 bytes are its DLTensor."""

    _fields_ = [("dl_tensor", ctypes.c_byte * 48), ("manager_ctx", c_void_p), ("deleter", ctypes.CFUNCTYPE(None, c_void_p))]


# Whoever takes a capsule's tensor renames it, and answers for the deleter from then on; one that nobody took is ours. An int
# and not an object: while a capsule is being destroyed nothing may refer to it.
@PYFUNCTYPE(None, c_void_p)
def end_of_capsule(capsule):
    for name, struct in ((b"dltensor_versioned", Versioned), (b"dltensor", Unversioned)):
        if capsule_is(capsule, name):
            managed = capsule_pointer(capsule, name)
            struct.from_address(managed).deleter(managed)


class Tensor:
    """An output of the loader's current batch: what from_dlpack() asks for."""

    def __init__(self, loader, name):
        self.loader, self.name = loader, name.encode()
        kind, number = c_int32(), c_int32()
        self.data = loader.check(loader.library.leat_where(loader.handle, self.name, kind, number))
        self.device = (kind.value, number.value)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or (dl_device is not None and tuple(dl_device) != self.device):
            raise BufferError("leat gives its batches away as and where they are; copy them afterwards")
        stream = 0 if stream is None else int(stream)
        if max_version is not None and max_version[0] >= 1:
            give, name = self.loader.library.leat_dlpack, b"dltensor_versioned"
        else:
            give, name = self.loader.library.leat_dlpack_unversioned, b"dltensor"
        return new_capsule(self.loader.check(give(self.loader.handle, self.name, stream)), name, end_of_capsule)


class Loader:
    """One epoch of a source: iterates over batches, each a function from an output's name to its Tensor."""

    def __init__(self, library, source, device):
        self.library = ctypes.CDLL(library)
        self.library.leat_error.restype = c_char_p
        for name, result, arguments in (
            ("leat_open", c_void_p, (c_char_p, c_uint32, c_int)),
            ("leat_next", c_int, (c_void_p,)),
            ("leat_where", c_void_p, (c_void_p, c_char_p, ctypes.POINTER(c_int32), ctypes.POINTER(c_int32))),
            ("leat_dlpack", c_void_p, (c_void_p, c_char_p, c_ssize_t)),
            ("leat_dlpack_unversioned", c_void_p, (c_void_p, c_char_p, c_ssize_t)),
            ("leat_held", c_int, (c_void_p,)),
            ("leat_close", None, (c_void_p,)),
        ):
            getattr(self.library, name).restype, getattr(self.library, name).argtypes = result, arguments
        cuda = -1 if device == "host" else int(device.removeprefix("cuda:"))
        self.handle = self.check(self.library.leat_open(source.encode(), 32, cuda))

    def check(self, value):
        if value is None or value == -1:
            raise RuntimeError(self.library.leat_error().decode())
        return value

    def __iter__(self):
        while self.check(self.library.leat_next(self.handle)):
            yield lambda name: Tensor(self, name)

    def held(self):
        """Batches whose memory has not gone home."""
        return self.library.leat_held(self.handle)

    def close(self):
        self.library.leat_close(self.handle)
        self.handle = None


def watch(name, from_dlpack, pointer_of, total_of, loader):
    """An epoch through one library's from_dlpack(). The first batch's pictures are kept to the end, and past the loader."""
    kept = kept_total = None
    rows = batches = 0
    for batch in loader:
        source = batch("jpg")
        pictures, classes = from_dlpack(source), from_dlpack(batch("cls"))
        assert pointer_of(pictures) == source.data, "that was a copy"
        assert len(pictures) == len(classes)
        if kept is None:
            kept, kept_total = pictures, total_of(pictures)
            print(f"{name}: {tuple(pictures.shape)} {pictures.dtype}, classes {classes[:6].tolist()}..., not copied")
        batch("cls").__dlpack__(max_version=(1, 0))  # Nobody takes these two: their capsules end them.
        batch("cls").__dlpack__()
        rows += len(pictures)
        batches += 1
    del pictures, classes
    assert loader.held() == 1, "more than the first batch is kept"
    loader.close()
    assert total_of(kept) == kept_total, "the first batch's memory has been written again"
    print(f"{name}: {rows} rows in {batches} batches; the first one still holds what it held, and its loader is gone")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("source")
    parser.add_argument("--device", default="host", help="host, or cuda:N")
    arguments = parser.parse_args()
    seen = 0

    try:
        import numpy
    except ImportError:
        print("NumPy is not installed: left out")
    else:
        if not hasattr(numpy, "from_dlpack"):
            print(f"NumPy {numpy.__version__} has no from_dlpack(): left out")
        elif arguments.device != "host":
            print("NumPy knows host memory only: left out")
        else:
            watch(f"NumPy {numpy.__version__}", numpy.from_dlpack, lambda array: array.ctypes.data,
                  lambda array: float(array.sum(dtype="f8")), Loader(arguments.library, arguments.source, "host"))
            seen += 1

    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: left out")
    else:
        watch(f"PyTorch {torch.__version__}", torch.from_dlpack, lambda tensor: tensor.data_ptr(),
              lambda tensor: float(tensor.double().sum()), Loader(arguments.library, arguments.source, arguments.device))
        seen += 1

    return 0 if seen else 77


if __name__ == "__main__":
    sys.exit(main())
