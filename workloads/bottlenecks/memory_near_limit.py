#!/usr/bin/env python3
# The limit: memory. The images are kept decoded, as many as fit: over 92 % of what the cgroup allows. The training is
# well, but one longer batch, one more worker, and the kernel kills it.
# Needs a memory limit of at most 4 GiB, as in: within --memory 700M -- python3 memory_near_limit.py
#
# spotter should say: memory-near-limit (peak memory is so many percent of the limit).

import time

from common import arguments, digits, network, skip
from limits import Memory
import torch
from torch import nn
from torch.utils.data import DataLoader


def keep_decoded(memory):
    """Fill what is left below the limit, 4 MB at a time."""
    kept = []
    while memory.used() < 0.92 * memory.limit:
        kept.append(torch.full((1 << 20,), 1.0))
    return kept


def main():
    args = arguments(seconds=8)
    memory = Memory()
    if memory.limit > 4 << 30:
        skip("no memory limit of at most 4 GiB here; try: within --memory 700M -- COMMAND")
    loader = DataLoader(digits(4096), batch_size=64, shuffle=True)
    model = network()
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    decoded = keep_decoded(memory)
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
        print(f"epoch {epoch}  {time.monotonic() - started:.2f} s  loss {loss.item():.4f}"
              f"  {len(decoded)} kept, memory {100 * memory.used() / memory.limit:.0f} %", flush=True)


if __name__ == "__main__":
    main()
