"""Datasets, fields and orders as values: each knows how it was made, so that it can be shown, compared and pickled (for spawned processes)."""

from . import _leat


def _named(call, of, name, qualified):
    """As functools.wraps(), whose module would be a tenth of the import's time."""
    call.__name__, call.__qualname__, call.__module__, call.__wrapped__ = name, qualified, "pyleat", of
    return call


def _again(call, args, kwargs, index):
    made = call(*args, **kwargs)
    return made if index is None else made[index]


def _method(name, of, *args, **kwargs):
    return getattr(of, name)(*args, **kwargs)


def _kept(given):
    """An argument as it is now: the caller may change a list later, also one in a tuple, and an iterator can be looked at once."""
    if isinstance(given, dict):
        return dict(given)
    # An open file is refused, and not read line by line before that.
    if isinstance(given, (list, tuple)) or (hasattr(given, "__next__") and not hasattr(given, "readline")):
        kept = [each if isinstance(each, (int, float, str)) else _kept(each) for each in given]
        return tuple(kept) if isinstance(given, tuple) else kept
    # Classes of NumPy have it, too: numpy.float32 is a dtype.
    return given.copy() if hasattr(given, "__array_interface__") and not isinstance(given, type) else given


def _kept_all(args, kwargs):
    return tuple(map(_kept, args)), {name: _kept(each) for name, each in kwargs.items()}


def _same(one, other):
    """As ==, which arrays answer value by value."""
    if isinstance(one, (tuple, list)):
        return type(one) is type(other) and len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if getattr(one, "shape", ()) or getattr(other, "shape", ()):
        return one is other or (type(one) is type(other) and one.shape == other.shape and one.dtype == other.dtype and bool((one == other).all()))
    return bool(one == other)


def _shown(given):
    """As repr(), but of a long list its begin."""
    if isinstance(given, (list, tuple)) and len(given) > 32:
        return f"[{', '.join(map(repr, given[:3]))}, ... {len(given)} in all]"
    return repr(given)


class _Value:
    # _made_by: what to call again, with which arguments, and which part of the answer it is.
    def __reduce__(self):
        return _again, self._made_by

    def __eq__(self, other):
        return type(self) is type(other) and _same(self._made_by, other._made_by)

    __hash__ = None

    def __repr__(self):
        call, args, kwargs, index = self._made_by
        text = [_shown(each) for each in args] + [f"{name}={_shown(each)}" for name, each in kwargs.items()]
        if call is _method:
            shown = f"{args[1]!r}.{args[0]}({', '.join(text[2:])})"
        else:
            shown = f"{call.__name__}({', '.join(text)})"
        return shown if index is None else f"{shown}[{index}]"


def _remembered(kind, made, call, args, kwargs, index=None):
    value = kind.__new__(kind)
    kind.__mro__[2].__init__(value, made)  # The class of the module: its copy constructor.
    value._made_by = (call, args, kwargs, index)
    return value


def _value(base):
    """The class of Python for one of the module's."""

    def __init__(self, *args, **kwargs):
        args, kwargs = _kept_all(args, kwargs)
        base.__init__(self, *args, **kwargs)
        self._made_by = (kind, args, kwargs, None)

    kind = type(base.__name__, (_Value, base), {"__init__": __init__, "__doc__": base.__doc__, "__module__": "pyleat"})

    def wrapped(name):
        method = getattr(base, name)

        def call(self, *args, **kwargs):
            args, kwargs = _kept_all(args, kwargs)
            made = method(self, *args, **kwargs)
            if isinstance(made, base):
                return _remembered(kind, made, _method, (name, self, *args), kwargs)
            if isinstance(made, list) and made and all(isinstance(each, base) for each in made):
                return [_remembered(kind, each, _method, (name, self, *args), kwargs, i) for i, each in enumerate(made)]
            return made

        # Without its text, which help() finds in the base class: the module writes it when it is asked for.
        return _named(call, method, name, f"{base.__name__}.{name}")

    for name in dir(base):
        if not name.startswith("_") and callable(getattr(base, name)):
            setattr(kind, name, wrapped(name))
    return kind


(Image, Label, Bytes, Text, Sequence, Array, Columns, Stack, Graph, Tokens, Tokenizer, Tokenize, Chat, Custom, Mask, Depth, Boxes,
 Points, Clip, Field, JoinKey, Dataset, Order, BatchMix) = map(
    _value, (_leat.Image, _leat.Label, _leat.Bytes, _leat.Text, _leat.Sequence, _leat.Array, _leat.Columns, _leat.Stack,
             _leat.Graph, _leat.Tokens, _leat.Tokenizer, _leat.Tokenize, _leat.Chat, _leat.Custom, _leat.Mask, _leat.Depth,
             _leat.Boxes, _leat.Points, _leat.Clip, _leat.Field, _leat.JoinKey, _leat.Dataset, _leat.Order,
             _leat.BatchMix))


def _refuse_to_pickle(self):
    raise TypeError("a Custom has an address of this process and cannot be pickled; make it anew in the other")


Custom.__reduce__ = _refuse_to_pickle


def _function(name, kind):
    function = getattr(_leat, name)

    def call(*args, **kwargs):
        args, kwargs = _kept_all(args, kwargs)
        return _remembered(kind, function(*args, **kwargs), call, args, kwargs)

    call.__doc__ = function.__doc__
    return _named(call, function, name, name)


(open, open_tokens, open_coco, open_voc, open_yolo, join, concat, zip, cut_windows, from_tensors) = [
    _function(name, Dataset) for name in ("open", "open_tokens", "open_coco", "open_voc", "open_yolo", "join", "concat", "zip",
                                          "cut_windows", "from_tensors")]
by, by_stem = [_function(name, JoinKey) for name in ("by", "by_stem")]
views, five_crop, ten_crop = [_function(name, Field) for name in ("views", "five_crop", "ten_crop")]
mixup, cutmix, mosaic = [_function(name, BatchMix) for name in ("mixup", "cutmix", "mosaic")]
(sequential, shuffled, shuffled_blocks, repeated, weighted, balanced, bucketed, mixed_by, node_local, packed, balanced_cost) = [
    _function(name, Order) for name in ("sequential", "shuffled", "shuffled_blocks", "repeated", "weighted", "balanced",
                                        "bucketed", "mixed_by", "node_local", "packed", "balanced_cost")]
