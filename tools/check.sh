#!/bin/sh
# make check: install what is missing, build, pass every test; the counting is tools/check.py's.
set -eu
cd "$(dirname "$0")/.."

groups="build bpf test"
tools/python.sh torch >/dev/null || groups="$groups demo"
tools/packages.sh install $groups
tools/build.sh build
python=$(tools/python.sh pytest) || {
	echo "spotter: no Python with pytest was found; set SPOTTER_PYTHON to one" >&2
	exit 1
}
exec "$python" tools/check.py build
