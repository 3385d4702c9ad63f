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


def _keyword(found):
    name, value, other = found.groups()
    if value is None:
        return f"{name}="
    if value in ("true", "false"):
        value = value.capitalize()
    elif not value.isdecimal():
        value = repr(value)
    return f"{name}={value}" + (f" or {other!r}" if other else "")


def in_python(text):
    """A message of the library, in the spelling of Python: batch_size= for loader_options::batch_size, pyleat.Image() for leat::image."""
    import re  # Of those who fail: it takes longer to import than this module.

    # Values that say their type.
    for typed, here in (("array_options::sample", r"samples='\1'"), ("decode_on", r"decode_on='\1'"), ("jpeg_decoder", r"decoder('\1')"),
                        ("pixel_rounding", r"rounding('\1')")):
        text = re.sub(rf"\b{typed}::(\w+)", here, text)
    # Those of a timeline are keywords of the loader; these two have other names here.
    text = text.replace("timeline_options::", "timeline_options::timeline_")
    text = text.replace("token_options::type", "token_options::dtype").replace("index_options::use", "index_options::index")
    text = re.sub(r"\b[a-z]+(?:_[a-z]+)*_options::(\w+)(?:\.(?:share|count)\b)?(?: = (\w+)\b(?!\()(?: or (substitute))?)?", _keyword, text)
    text = re.sub(r"\b(order=) = (\w+\()", r"\1pyleat.\2", text)
    text = re.sub(r"leat::tokens how\{\.length = (\d+)\}; leat::loader train\{leat::cut_windows\(dataset, how\), options, how\};",
                  r"how = pyleat.Tokens(\1); train = pyleat.Loader(pyleat.cut_windows(dataset, how), how)", text)
    text = re.sub(r"\bleat::(?:dtype|layout)::(\w+)", r"'\1'", text)
    text = re.sub(r"\{\.type = ('\w+')\}", r"dtype=\1", text)
    text = re.sub(r"\{\{(\"[^\"]*\"), (\"[^\"]*\")\}\}", r"{\1: \2}", text)
    # Fields and loaders are classes here, functions have their names.
    text = text.replace("tokens::length", "length=").replace("tokens::type", "dtype=")
    text = re.sub(r"\b(leat::)?(array|boxes|bytes|chat|clip|columns|custom|depth|graph|image|label|loader|mask|points|sequence|stack|text|tokenize|"
                  r"tokenizer|tokens)\b(?(1)|::(?=\w))", lambda found: f"pyleat.{found[2].capitalize()}" if found[1] else f"{found[2].capitalize()}.", text)
    text = re.sub(r"\b(pyleat\.\w+)\{([^{}]*)\}", r"\1(\2)", text)
    text = re.sub(r"\bleat::(\w+)", r"pyleat.\1", text)
    # Names that are words of Python's grammar.
    return re.sub(r"\.(from|as|in)\(", r".\1_(", text)
