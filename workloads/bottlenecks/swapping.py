#!/usr/bin/env python3
# The limit: the samples are kept in memory, and memory is smaller than they are: the rest is in swap, and each
# batch, drawn at random, waits until its samples were read back from there.
# Needs a memory limit and swap, as in: within --memory 500M --swap 600M -- python3 swapping.py
#
# spotter should say: swapping (memory goes to swap and comes back while the job waits).

import time

from common import arguments, network, skip
from limits import Memory
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SAMPLE = 100 * 784 * 4


class InMemory(Dataset):
    """Samples of 100 frames of 28 x 28 each, of which the training sees the mean."""

    def __init__(self, count):
        self.frames = torch.ones(count, 100, 28, 28)

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, index):
        return self.frames[index].mean(dim=0, keepdim=True), index % 10


def free_swap():
    with open("/proc/meminfo") as file:
        return int(dict(line.split(":") for line in file)["SwapFree"].split()[0]) * 1024


def main():
    args = arguments(seconds=10)
    memory = Memory()
    if memory.limit > 4 << 30:
        skip("no memory limit of at most 4 GiB here; try: within --memory 500M --swap 600M -- COMMAND")
    if free_swap() < memory.limit:
        skip("less free swap than the memory limit; try: within --memory 500M --swap 600M -- COMMAND")
    loader = DataLoader(InMemory(memory.limit * 5 // 4 // SAMPLE), batch_size=32, shuffle=True)
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
