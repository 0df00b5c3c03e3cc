#!/usr/bin/env python3
# The limit: the losses are kept for a plot, and with each of them the graph it came from, activations and all:
# memory grows by some 2 MB a step until there is none left. (losses.append(loss.item()) would be right.)
#
# spotter should say: memory-growing (so many MB a minute, and when the memory will be full).

import time

from common import arguments, digits
import torch
from torch import nn
from torch.utils.data import DataLoader


def main():
    args = arguments(seconds=10)
    loader = DataLoader(digits(4096), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                          nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    losses = []
    until = time.monotonic() + args.seconds
    epoch = 0
    while time.monotonic() < until:
        started = time.monotonic()
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward(retain_graph=True)
            optimizer.step()
            losses.append(loss)
        epoch += 1
        mean = sum(loss.item() for loss in losses) / len(losses)
        print(f"epoch {epoch}  {time.monotonic() - started:.2f} s  mean loss {mean:.4f}", flush=True)


if __name__ == "__main__":
    main()
