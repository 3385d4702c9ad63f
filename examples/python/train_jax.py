"""Fits a linear classifier to a folder of class folders with JAX.

    python examples/python/train_jax.py PHOTOS

Needs pyleat and JAX. Batches are JAX's arrays over leat's memory, without a copy.
"""

import sys

import jax
import jax.numpy as jnp

import pyleat as leat


def loss(weights, pictures, classes):
    scores = pictures.reshape(len(pictures), -1) @ weights
    return -jnp.take_along_axis(jax.nn.log_softmax(scores), classes[:, None], axis=1).mean()


@jax.jit
def step(weights, pictures, classes):
    value, slope = jax.value_and_grad(loss)(weights, pictures, classes)
    return weights - 0.01 * slope, value


def train(photos, epochs=3):
    data = leat.open(photos)
    # Every batch has as many rows: one compilation.
    loader = leat.Loader(data, leat.Image().resize(40).center_crop(32).normalize(leat.IMAGENET), leat.Label().as_("i32"),
                         batch_size=32, seed=7, drop_last=True, to="jax")
    weights = jnp.zeros((3 * 32 * 32, len(data.classes)))
    with loader:
        for epoch in range(epochs):
            losses = []
            for batch in loader:
                weights, value = step(weights, batch["jpg"], batch["cls"])
                losses.append(float(value))
            print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    train(sys.argv[1])
