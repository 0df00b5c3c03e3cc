#!/bin/sh
# make demo: from a machine with a C compiler to the report about a real training, in one command.
# The recording is kept as build/demo.spot, to look at with `build/spotter report build/demo.spot`.
set -eu
cd "$(dirname "$0")/.."

groups=build
tools/python.sh torch >/dev/null || groups="$groups demo"
# The BPF parts only make reading tasks cheaper: where nobody may install them, it goes without.
tools/packages.sh install $groups bpf || [ -z "$(tools/packages.sh missing $groups)" ] || exit 1
python=$(tools/python.sh torch) || {
	echo "spotter: no Python with PyTorch was found; set SPOTTER_PYTHON to one" >&2
	exit 1
}

tools/build.sh build
rm -f build/demo.spot
exec build/spotter run -o build/demo.spot -- "$python" workloads/light/train.py --epochs 2 --batches 200
