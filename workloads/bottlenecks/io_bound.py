#!/usr/bin/env python3
# The limit: the features of a sample are 16 pieces of 64 KiB at random places of a table on disk. The table is
# taken to be far larger than memory, so it is read past the page cache and each piece waits for the disk.
# One process, one thread; little arithmetic between the reads.
#
# spotter should say: io-bound (the steps wait for reads from disk, and the CPU idles meanwhile).

import errno
import mmap
import os
import time

from common import arguments, network, skip
import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PIECE = 65536
PIECES = 4096
PIECES_PER_SAMPLE = 16


def table(folder):
    """The path of the table of 256 MiB, written once."""
    path = os.path.join(folder, "features.f32")
    if not os.path.exists(path) or os.path.getsize(path) != PIECES * PIECE:
        random = numpy.random.RandomState(1)
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "wb") as file:
            for _ in range(PIECES // 64):
                file.write(random.standard_normal((64, PIECE // 4)).astype(numpy.float32).tobytes())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    return path


class Features(Dataset):
    """The features of a sample are the mean of its pieces."""

    def __init__(self, path, count):
        self.file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        self.buffer = mmap.mmap(-1, PIECE)
        self.piece = numpy.frombuffer(self.buffer, numpy.float32)
        self.pieces = numpy.random.RandomState(2).randint(0, PIECES, (count, PIECES_PER_SAMPLE))

    def __len__(self):
        return len(self.pieces)

    def __getitem__(self, index):
        mean = numpy.zeros(784, numpy.float32)
        for number in self.pieces[index]:
            os.preadv(self.file, [self.buffer], int(number) * PIECE)
            mean += self.piece[:784]
        return torch.from_numpy(mean).view(1, 28, 28), int(mean[:10].argmax())


def read_from_disk():
    with open("/proc/self/io") as file:
        return int(dict(line.split(": ") for line in file)["read_bytes"])


def main():
    args = arguments(seconds=10)
    before = read_from_disk()
    try:
        features = Features(table(args.cache), 2048)
        features[0]
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        skip(f"{args.cache} cannot be read past the page cache; name a folder on a disk with --cache")
    if read_from_disk() - before < PIECES_PER_SAMPLE * PIECE:
        skip(f"{args.cache} is not on a disk of this machine; name a folder that is with --cache")
    loader = DataLoader(features, batch_size=16, shuffle=True)
    model = network()
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
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
