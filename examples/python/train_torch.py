"""Trains a small network on a folder of class folders, is killed when one likes, and goes on where it was.

    python examples/python/train_torch.py PHOTOS [STATE]

Needs pyleat and PyTorch. STATE (default: train_torch.state) holds the network, the optimizer and the place in the data.
"""

import os
import sys

import torch
from torch import nn

import pyleat as leat


def train(photos, path="train_torch.state", epochs=3):
    torch.manual_seed(7)
    data = leat.open(photos)
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    loader = leat.Loader(data, leat.Image().random_resized_crop(64).random_flip().normalize(leat.IMAGENET), leat.Label(),
                         batch_size=32, seed=7, epochs=epochs, device=device, to="torch")
    network = nn.Sequential(nn.Conv2d(3, 16, 5, stride=4), nn.ReLU(), nn.Flatten(),
                            nn.Linear(16 * 15 * 15, len(data.classes))).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    if os.path.exists(path):
        saved = torch.load(path, weights_only=True)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
    with loader:
        while not loader.finished:
            for batch in loader:
                loss = nn.functional.cross_entropy(network(batch["jpg"]), batch["cls"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                at = loader.state_dict()
                print(f"epoch {at['epoch']} batch {at['batch']}: {loss.item():.6f}", flush=True)
                saved = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "loader": at}
                torch.save(saved, path + ".new")
                os.replace(path + ".new", path)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    train(*sys.argv[1:])
