#!/usr/bin/env python3
# The limit: sequences are padded to the longest of their batch. One sample in 250 is ten times as long as the
# others, and the step of its batch takes about ten times as long: arithmetic on padding.
#
# spotter should say: uneven-steps (a few steps take many times the median and a good part of the time).

import time

from common import arguments
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    """Sequences of 40 vectors, and now and then one of 400."""

    def __init__(self, count):
        self.sequences = [torch.randn(400 if index % 250 == 100 else 40, 32) for index in range(count)]
        self.labels = [int(sequence[:, 0].mean() > 0) for sequence in self.sequences]

    def __len__(self):
        return len(self.sequences)

    def __getitem__(self, index):
        return self.sequences[index], self.labels[index]


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.GRU(32, 96, batch_first=True)
        self.classifier = nn.Linear(96, 2)

    def forward(self, x):
        return self.classifier(self.layers(x)[0].mean(dim=1))


def pad(samples):
    return pad_sequence([sequence for sequence, _ in samples], True), torch.tensor([label for _, label in samples])


def main():
    args = arguments(seconds=8)
    loader = DataLoader(Sentences(2000), batch_size=20, collate_fn=pad)
    model = Reader()
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters())
    until = time.monotonic() + args.seconds
    epoch = 0
    while time.monotonic() < until:
        started = time.monotonic()
        for sequences, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(sequences), labels)
            loss.backward()
            optimizer.step()
        epoch += 1
        print(f"epoch {epoch}  {time.monotonic() - started:.2f} s  loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
