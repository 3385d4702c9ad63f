"""A DataModule for Lightning: each of its ranks makes a loader of its own part.

    from pyleat.lightning import DataModule
    data = DataModule(train=lambda **rank: leat.Loader("train", leat.Image().random_resized_crop(224), leat.Label(), batch_size=64, **rank),
                      val=lambda **rank: leat.Loader("val", leat.Image().resize(256).center_crop(224), leat.Label(), batch_size=64,
                                                     shuffle=False, **rank))
    trainer.fit(model, data)

Lightning keeps the state of the loaders in its checkpoints, and goes on in the middle of an epoch. On one rank a Loader can be given to
fit() as it is.
"""

import lightning


class DataModule(lightning.LightningDataModule):
    """train, val, test, predict: each a function that makes a Loader from `world` and `to`, or None."""

    def __init__(self, train=None, val=None, test=None, predict=None):
        super().__init__()
        self._makers = {"train": train, "val": val, "test": test, "predict": predict}
        for name, make in self._makers.items():
            if make is not None and not callable(make):
                raise TypeError(f"DataModule({name}=) is a function that makes a Loader, and not {make!r}: each rank makes one of its own")
            # Lightning takes a module that has no such function for one without these batches.
            if make is not None:
                setattr(self, f"{name}_dataloader", lambda make=make: self._made(make))

    def _made(self, make):
        ranks = {"to": "torch"}
        if self.trainer is not None:
            ranks["world"] = (self.trainer.global_rank, self.trainer.world_size)
        return make(**ranks)
