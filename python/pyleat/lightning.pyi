# What type checkers see of lightning.py.
from collections.abc import Callable

import lightning

from ._loader import Loader

class DataModule(lightning.LightningDataModule):
    def __init__(self, train: Callable[..., Loader] | None = None, val: Callable[..., Loader] | None = None,
                 test: Callable[..., Loader] | None = None, predict: Callable[..., Loader] | None = None) -> None: ...
