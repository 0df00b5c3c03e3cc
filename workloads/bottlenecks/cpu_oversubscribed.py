#!/usr/bin/env python3
# The limit: four times as many compute threads as there are cores, a setting carried over from a larger machine.
# The threads of each operation wait for the last of them, which waits for a core.
#
# spotter should say: cpu-oversubscribed (threads are ready to run but wait for a core; use fewer threads).

import os
import time

from common import arguments, digits, network
import torch
from torch import nn
from torch.utils.data import DataLoader


def main():
    args = arguments(seconds=8)
    torch.set_num_threads(4 * len(os.sched_getaffinity(0)))
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
            if time.monotonic() >= until:
                break
        epoch += 1
        print(f"epoch {epoch}  {time.monotonic() - started:.2f} s  loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
