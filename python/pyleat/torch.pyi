# What type checkers see of torch.py.
from collections.abc import Sequence
from typing import Any, Literal

from . import _leat
from ._loader import Loader

class DataLoader(Loader):
    dataset: object
    batch_size: int
    drop_last: bool
    def __init__(self, dataset: object, fields: Sequence[object], batch_size: int = 1, shuffle: bool | None = None,
                 sampler: _leat.Order | None = None, *, drop_last: bool = False, to: Literal["numpy", "torch", "jax"] | None = "torch",
                 **options: Any) -> None: ...
