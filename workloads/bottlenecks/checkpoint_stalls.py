#!/usr/bin/env python3
# The limit: a small classifier is trained on a large frozen embedding, and every 8 steps all of it is saved and
# made durable, which takes longer than the 8 steps do.
#
# spotter should say: checkpoint-stalls (the share of time that goes into checkpoints; save less often).

import os
import tempfile
import time

from common import arguments, digits, network
import torch
from torch import nn
from torch.utils.data import DataLoader


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(12000, 784)
        self.embedding.weight.requires_grad = False
        self.classifier = network()

    def forward(self, images, words):
        return self.classifier(images + self.embedding(words).view(-1, 1, 28, 28))


def save(model, optimizer, path):
    """A checkpoint that survives a power cut: each write waits for the disk, then it takes the old one's place."""
    with open(path + ".new", "wb", opener=lambda name, flags: os.open(name, flags | os.O_DSYNC, 0o666)) as file:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    os.replace(path + ".new", path)


def main():
    args = arguments(seconds=8)
    loader = DataLoader(digits(4096), batch_size=64, shuffle=True)
    model = Model()
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01, momentum=0.9)
    until = time.monotonic() + args.seconds
    epoch = step = 0
    with tempfile.TemporaryDirectory(dir=args.cache) as folder:
        while time.monotonic() < until:
            started = time.monotonic()
            for images, labels in loader:
                optimizer.zero_grad()
                loss = loss_of(model(images, labels), labels)
                loss.backward()
                optimizer.step()
                step += 1
                if step % 8 == 0:
                    save(model, optimizer, os.path.join(folder, "checkpoint.pt"))
                if time.monotonic() >= until:
                    break
            epoch += 1
            print(f"epoch {epoch}  {time.monotonic() - started:.2f} s  loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
