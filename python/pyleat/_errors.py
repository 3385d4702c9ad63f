"""The exceptions: one for each kind of failure, which is also the builtin that it resembles."""


class Error(RuntimeError):
    """What leat throws. The text says what is wrong, where, and what to do."""


class UsageError(Error, ValueError):
    """The call cannot be right: options that contradict, a field that is not there, use after fork()."""


class NotFoundError(Error, FileNotFoundError):
    """A file, field or member that is not there."""


class PermissionDeniedError(Error, PermissionError):
    """The user of the process may not read the file."""


class ReadError(Error, OSError):
    """A read, open or write failed, or took too long."""


class LimitError(Error, MemoryError):
    """A budget, memlock or open files: the text says what would do."""


class FormatError(Error, ValueError):
    """Bytes that are not what they should be."""


class UnsupportedError(Error, NotImplementedError):
    """Well-formed, and not for this build or machine."""


class DeviceError(Error):
    """A call of the GPU's runtime failed; the loader is over."""


class CorruptError(Error, ValueError):
    """A corrupt sample under on_corrupt="raise", or more than corrupt_max."""


class ChangedError(Error, OSError):
    """Files were written or replaced since the dataset was opened."""


class CallbackError(Error):
    """A function of yours failed."""


class CancelledError(Error):
    """The loader was stopped."""
