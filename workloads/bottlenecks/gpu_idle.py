#!/usr/bin/env python3
# The limit: the device is written into the script, and it is the CPU. On a machine with a GPU (or with the tests'
# double of NVML on LD_LIBRARY_PATH) the GPU stands idle for the whole run. Without one this is a healthy training.
#
# spotter should say: gpu-idle (a GPU is visible, and the job never used it).

import time

from common import arguments, digits, network
import torch
from torch import nn
from torch.utils.data import DataLoader


def main():
    args = arguments(seconds=8)
    device = torch.device("cpu")
    loader = DataLoader(digits(4096), batch_size=128, shuffle=True)
    model = network().to(device)
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    until = time.monotonic() + args.seconds
    epoch = 0
    while time.monotonic() < until:
        started = time.monotonic()
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
        epoch += 1
        print(f"epoch {epoch}  {time.monotonic() - started:.2f} s  loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
