# What the small trainings of this folder share: their options, their cache, a small network and data in memory.
# Nothing here limits anything: each limit stands in the script that has it. Imported before torch, because the
# number of OpenBLAS threads is read when it is loaded.

import argparse
import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

SKIP = 77  # exit status: this machine lacks what the script needs; the reason is on standard error


def arguments(seconds):
    """--seconds and --cache; --seconds 0 only prepares what the training reads."""
    parser = argparse.ArgumentParser(description="A small training with a known limit; see the head of the file.")
    parser.add_argument("--seconds", type=float, default=seconds, help="how long to train (default: %(default)s)")
    parser.add_argument("--cache", metavar="DIR", help="where files are kept (default: %(default)s)",
                        default=os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                                             "spotter-workloads"))
    args = parser.parse_args()
    os.makedirs(args.cache, exist_ok=True)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    return args


def skip(reason):
    print(f"skipped: {reason}", file=sys.stderr)
    sys.exit(SKIP)


def network():
    """Two convolutions and a classifier for images of 1 x 28 x 28."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 10))


def digits(count):
    """count random images with labels that can be learned, in memory."""
    labels = torch.randint(0, 10, (count,))
    shapes = torch.randn(10, 1, 28, 28)
    return TensorDataset(shapes[labels] + torch.randn(count, 1, 28, 28), labels)
