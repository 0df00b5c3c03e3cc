#!/usr/bin/env python3
# The heavy workload: ResNet-50 on ImageNet-shaped data, 1000 classes, images of 224 x 224, batches of 32, SGD
# with momentum, a test after each epoch, a checkpoint at the end. Meant for a GPU; --image-size, --batch-size
# and --batches make it small enough to try on a CPU.
#
# The images are synthetic: drawn when they are asked for, or, with --data DIR, drawn once into one file of
# 256 x 256 x 3 bytes each and read from there. This script knows nothing of spotter: it is what a user brings.

import argparse
import os
import time

import numpy
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = 1000
STORED = 256
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "spotter-workloads")


class Block(nn.Module):
    """1x1, 3x3 (with the stride), 1x1 to four times the width, and the input added."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                          nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(self.norm3(self.conv3(y)) + self.shortcut(x))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                  nn.MaxPool2d(3, 2, padding=1)]
        inputs = 64
        for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for number in range(blocks):
                layers.append(Block(inputs, width, stride if number == 0 else 1))
                inputs = 4 * width
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(inputs, CLASSES)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        return self.classifier(F.adaptive_avg_pool2d(self.features(x), 1).flatten(1))


def draw(index):
    """Image number index, the same each time: two waves whose direction and colour the class decides, and noise."""
    random = numpy.random.RandomState(index)
    label = index * 7919 % CLASSES
    style = numpy.random.RandomState(10**6 + label)
    y, x = numpy.mgrid[0:STORED, 0:STORED].astype(numpy.float32)
    image = numpy.zeros((STORED, STORED, 3), numpy.float32)
    for _ in range(2):
        dy, dx = style.uniform(-0.25, 0.25, 2)
        wave = numpy.sin(numpy.float32(dy) * y + numpy.float32(dx) * x + numpy.float32(random.uniform(0, 6)))
        image += wave[:, :, None] * style.uniform(-50, 50, 3).astype(numpy.float32)
    noise = random.randint(-32, 32, image.shape, dtype=numpy.int8)
    return numpy.clip(image + noise + 128, 0, 255).astype(numpy.uint8)


def stored(folder, name, count, offset):
    """The images offset .. offset + count as one file, drawn once; a mapped array."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{name}-{count}.u8")
    shape = (count, STORED, STORED, 3)
    if not os.path.exists(path):
        print(f"drawing {count} images into {path}", flush=True)
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "wb") as file:
            for index in range(count):
                file.write(draw(offset + index).tobytes())
        os.replace(temporary, path)
    return numpy.memmap(path, numpy.uint8, "r", shape=shape)


class Images(Dataset):
    """Random crops, half of them mirrored, for training; the middle for tests."""

    MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def __init__(self, count, offset, size, random_crop, file=None):
        self.count, self.offset, self.size, self.random_crop, self.file = count, offset, size, random_crop, file

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        image = draw(self.offset + index) if self.file is None else numpy.array(self.file[index])
        margin = STORED - self.size
        top = left = margin // 2
        if self.random_crop:
            top, left = torch.randint(0, margin + 1, (2,)).tolist()
        pixels = torch.from_numpy(image[top : top + self.size, left : left + self.size])
        pixels = pixels.permute(2, 0, 1).float().div_(255).sub_(self.MEAN).div_(self.DEVIATION)
        if self.random_crop and torch.rand(()) < 0.5:
            pixels = pixels.flip(2)
        return pixels, (self.offset + index) * 7919 % CLASSES


def train(model, device, loader, optimizer, batches):
    model.train()
    for number, (images, labels) in enumerate(loader):
        if number == batches:
            break
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 20 == 0:
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
    parser = argparse.ArgumentParser(description="ResNet-50 on ImageNet-shaped images.")
    parser.add_argument("--data", metavar="DIR", help="keep the images in files there (196,608 bytes per image)")
    parser.add_argument("--images", type=int, default=20000, help="training images (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batches", type=int, default=-1, help="training batches per epoch (default: all)")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--image-size", type=int, default=224, help="at most 256 (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="processes of the data loader (default: 2)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, help="compute threads (default: PyTorch's)")
    parser.add_argument("--output", metavar="FILE", default=os.path.join(CACHE, "heavy.pt"),
                        help="the checkpoint (default: %(default)s)")
    args = parser.parse_args()
    if not 32 <= args.image_size <= STORED:
        parser.error(f"--image-size must be between 32 and {STORED}")

    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tests = max(args.images // 20, args.batch_size)
    parts = []
    for name, count, offset in (("train", args.images, 0), ("test", tests, args.images)):
        file = stored(args.data, name, count, offset) if args.data else None
        parts.append(DataLoader(Images(count, offset, args.image_size, name == "train", file),
                                batch_size=args.batch_size, shuffle=name == "train", num_workers=args.workers,
                                pin_memory=device.type == "cuda"))

    model = ResNet50().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * args.batch_size / 256, momentum=0.9, weight_decay=1e-4)
    for epoch in range(1, args.epochs + 1):
        started = time.perf_counter()
        train(model, device, parts[0], optimizer, args.batches)
        trained = time.perf_counter()
        accuracy = test(model, device, parts[1], args.batches)
        print(f"epoch {epoch}  {trained - started:.3f} s  test {time.perf_counter() - trained:.3f} s"
              f"  accuracy {100 * accuracy:.2f} %", flush=True)
    os.makedirs(os.path.dirname(os.path.abspath(args.output)), exist_ok=True)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, args.output)


if __name__ == "__main__":
    main()
