#!/usr/bin/env python3
# The light workload: the small convolutional network of the PyTorch examples on MNIST. Batches of 64,
# Adadelta with a learning rate that falls by 0.7 each epoch, a test after each epoch, a checkpoint at the end.
#
# --data DIR reads the four real IDX files (plain or .gz). Without it, files of the same format and shape are
# drawn once into a cache directory: digits of seven strokes, moved, bent and noisy, so that accuracy rises.
# This script knows nothing of spotter: it is what a user brings.

import argparse
import gzip
import os
import struct
import time

import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "spotter-workloads")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = self.dropout1(F.max_pool2d(x, 2))
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return F.log_softmax(self.fc2(self.dropout2(x)), dim=1)


def read_idx(folder, name):
    """One IDX file of unsigned bytes, plain or gzipped, as an array of the shape it states."""
    path = os.path.join(folder, name)
    if os.path.exists(path):
        file = open(path, "rb")
    elif os.path.exists(path + ".gz"):
        file = gzip.open(path + ".gz", "rb")
    else:
        raise SystemExit(f"{path}: no such file, nor {name}.gz; --data names the folder of the IDX files")
    with file:
        zeros, kind, dimensions = struct.unpack(">HBB", file.read(4))
        if zeros != 0 or kind != 8:
            raise SystemExit(f"{path}: not an IDX file of unsigned bytes")
        shape = struct.unpack(f">{dimensions}I", file.read(4 * dimensions))
        return numpy.frombuffer(file.read(), dtype=numpy.uint8).reshape(shape)


def write_idx(path, array):
    """Written beside and renamed, so that a file that is there is whole."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "wb") as file:
        file.write(struct.pack(">HBB", 0, 8, array.ndim))
        file.write(struct.pack(f">{array.ndim}I", *array.shape))
        file.write(array.tobytes())
    os.replace(temporary, path)


# The strokes of a seven-stroke digit as (x0, y0, x1, y1) in a box of 1 x 2, and which digit has which.
STROKES = ((0, 0, 1, 0), (1, 0, 1, 1), (1, 1, 1, 2), (0, 2, 1, 2), (0, 1, 0, 2), (0, 0, 0, 1), (0, 1, 1, 1))
DIGITS = ("012345", "12", "01346", "01236", "1256", "02356", "023456", "012", "0123456", "012356")


def draw_digits(count, seed):
    """count images of 28 x 28 and their labels, the same for the same seed."""
    random = numpy.random.RandomState(seed)
    labels = random.randint(0, 10, count).astype(numpy.uint8)
    images = numpy.empty((count, 28, 28), numpy.uint8)
    lit = numpy.array([[str(s) in digit for s in range(7)] for digit in DIGITS], numpy.float32)
    y, x = numpy.mgrid[0:28, 0:28].astype(numpy.float32)
    for first in range(0, count, 1000):
        n = min(1000, count - first)
        size = random.uniform(5.5, 8.5, (n, 1, 1)).astype(numpy.float32)
        slant = random.uniform(-0.35, 0.35, (n, 1, 1)).astype(numpy.float32)
        left = random.uniform(6, 13, (n, 1, 1)).astype(numpy.float32)
        top = random.uniform(3, 7, (n, 1, 1)).astype(numpy.float32)
        width = random.uniform(0.8, 1.8, (n, 1, 1)).astype(numpy.float32)
        faint = random.uniform(0.35, 1, (n, 7)).astype(numpy.float32) * lit[labels[first : first + n]]
        v = (y - top) / size
        u = (x - left) / size + slant * (v - 1)
        ink = numpy.zeros((n, 28, 28), numpy.float32)
        for s, (x0, y0, x1, y1) in enumerate(STROKES):
            gone = numpy.hypot(u - numpy.clip(u, x0, x1), v - numpy.clip(v, y0, y1)) * size
            numpy.maximum(ink, numpy.clip(width + 0.5 - gone, 0, 1) * faint[:, s, None, None], out=ink)
        ink = ink * 230 + numpy.abs(random.standard_normal(ink.shape).astype(numpy.float32)) * 18
        images[first : first + n] = numpy.clip(ink, 0, 255)
    return images, labels


def synthetic(folder):
    """Draw the four files unless they are there already."""
    os.makedirs(folder, exist_ok=True)
    for part, count, seed in (("train", 60000, 1), ("test", 10000, 2)):
        paths = [os.path.join(folder, name) for name in FILES[part]]
        if all(os.path.exists(path) for path in paths):
            continue
        print(f"drawing {count} digits into {folder}", flush=True)
        for path, array in zip(paths, draw_digits(count, seed)):
            write_idx(path, array)
    return folder


class Digits(Dataset):
    def __init__(self, folder, part):
        images, labels = FILES[part]
        self.images = read_idx(folder, images)
        self.labels = read_idx(folder, labels)
        if self.images.ndim != 3 or self.images.shape[1:] != (28, 28) or len(self.images) != len(self.labels):
            raise SystemExit(f"{folder}: the {part} images and labels do not fit together")

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index].astype(numpy.float32))
        return image.div_(255).sub_(0.1307).div_(0.3081).unsqueeze(0), int(self.labels[index])


def train(model, device, loader, optimizer, batches):
    model.train()
    for number, (images, labels) in enumerate(loader):
        if number == batches:
            break
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(images), labels)
        loss.backward()
        optimizer.step()
        if number % 100 == 0:
            print(f"  batch {number}  loss {loss.item():.4f}", flush=True)


def test(model, device, loader, batches):
    model.eval()
    right = seen = 0
    with torch.no_grad():
        for number, (images, labels) in enumerate(loader):
            if number == batches:
                break
            guesses = model(images.to(device)).argmax(dim=1)
            right += (guesses == labels.to(device)).sum().item()
            seen += len(labels)
    return right / seen


def main():
    parser = argparse.ArgumentParser(description="A small CNN on MNIST.")
    parser.add_argument("--data", metavar="DIR", help="folder with the real IDX files, plain or .gz")
    parser.add_argument("--cache", metavar="DIR", default=CACHE,
                        help="where synthetic files and the checkpoint are kept (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batches", type=int, default=-1, help="training batches per epoch (default: all)")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=0, help="processes of the data loader (default: 0)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, help="compute threads (default: PyTorch's)")
    parser.add_argument("--output", metavar="FILE", help="the checkpoint (default: light.pt in the cache)")
    args = parser.parse_args()

    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    folder = args.data or synthetic(args.cache)
    training = DataLoader(Digits(folder, "train"), batch_size=args.batch_size, shuffle=True,
                          num_workers=args.workers)
    testing = DataLoader(Digits(folder, "test"), batch_size=1000)

    model = Net().to(device)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(1, args.epochs + 1):
        started = time.perf_counter()
        train(model, device, training, optimizer, args.batches)
        trained = time.perf_counter()
        accuracy = test(model, device, testing, -1 if args.batches < 0 else 2)
        scheduler.step()
        print(f"epoch {epoch}  {trained - started:.3f} s  test {time.perf_counter() - trained:.3f} s"
              f"  accuracy {100 * accuracy:.2f} %", flush=True)
    os.makedirs(args.cache, exist_ok=True)
    torch.save(model.state_dict(), args.output or os.path.join(args.cache, "light.pt"))


if __name__ == "__main__":
    main()
