#!/usr/bin/env python3
# The limit: the list of samples is half a million Python objects, and every 5 steps the garbage collector is called "to
# save memory": it walks all of them and finds nothing.
#
# spotter should say: gc-pauses (the share of time that goes into garbage collection; gc.freeze() or no call).

import gc
import time

from common import arguments, digits, network
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sample:
    def __init__(self, index):
        self.index = index
        self.tags = [index]


class Catalogue(Dataset):
    """Samples that know more about themselves than the training needs."""

    def __init__(self, count):
        gc.disable()
        self.samples = [Sample(index) for index in range(count)]
        gc.enable()
        self.digits = digits(4096)

    def __len__(self):
        return len(self.digits)

    def __getitem__(self, index):
        return self.digits[self.samples[index].index]


def main():
    args = arguments(seconds=8)
    loader = DataLoader(Catalogue(180000), batch_size=64, shuffle=True)
    model = network()
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    until = time.monotonic() + args.seconds
    epoch = step = 0
    while time.monotonic() < until:
        started = time.monotonic()
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
            step += 1
            if step % 5 == 0:
                gc.collect()
        epoch += 1
        print(f"epoch {epoch}  {time.monotonic() - started:.2f} s  loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
