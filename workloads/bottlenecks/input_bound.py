#!/usr/bin/env python3
# The limit: the data loader works in the main process and unpacks and augments each image in Python, which takes
# about four times as long as the training step that waits for it. One thread computes, nothing is read from disk.
#
# spotter should say: input-bound (most of each step is spent waiting for the next batch; use loader workers).

import time
import zlib

from common import arguments, network
import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class PackedImages(Dataset):
    """Compressed images of 224 x 224 that are unpacked, turned, cropped and scaled each time."""

    def __init__(self, count):
        random = numpy.random.RandomState(1)
        self.labels = random.randint(0, 10, count)
        shapes = random.randint(0, 200, (10, 28, 28)).repeat(8, 1).repeat(8, 2)
        self.packed = [
            zlib.compress((shapes[label] + random.randint(0, 16, (224, 224))).astype(numpy.uint8).tobytes())
            for label in self.labels
        ]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = numpy.frombuffer(zlib.decompress(self.packed[index]), numpy.uint8).reshape(224, 224)
        if torch.rand(()) < 0.5:
            image = image[:, ::-1]
        image = (image.astype(numpy.float32) - image.mean()) / (image.std() + 1)
        small = image.reshape(28, 8, 28, 8).mean(axis=(1, 3))
        return torch.from_numpy(small).unsqueeze(0), int(self.labels[index])


def main():
    args = arguments(seconds=8)
    loader = DataLoader(PackedImages(1024), batch_size=64, shuffle=True)
    model = network()
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    until = time.monotonic() + args.seconds
    epoch = 0
    while time.monotonic() < until:
        started = time.monotonic()
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
        epoch += 1
        print(f"epoch {epoch}  {time.monotonic() - started:.2f} s  loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
