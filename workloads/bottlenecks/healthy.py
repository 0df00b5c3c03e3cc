#!/usr/bin/env python3
# Nothing limits this training but its own arithmetic: the data are in memory, one thread computes, memory stays
# the same, the steps are even, one checkpoint is written at the end.
#
# spotter should say: healthy.

import os
import time

from common import arguments, digits, network
import torch
from torch import nn
from torch.utils.data import DataLoader


def main():
    args = arguments(seconds=8)
    loader = DataLoader(digits(4096), batch_size=128, shuffle=True)
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
    torch.save(model.state_dict(), os.path.join(args.cache, "healthy.pt"))


if __name__ == "__main__":
    main()
