"""The command leat of the wheel: it is a part of the module, which has the same code."""

import os
import signal
import sys


def main():
    # As it is in a process that is no Python.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    for each in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)
    from . import _leat

    if not hasattr(_leat, "_command"):
        return "leat: this pyleat was built without the command; scripts/wheel builds it with it"
    return _leat._command([os.fsencode(each) for each in ["leat", *sys.argv[1:]]])
