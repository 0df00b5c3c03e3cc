#!/bin/sh
# Prints the project's own source files of one language, one per line: c, python or shell.
set -eu
cd "$(dirname "$0")/.."
files()
{
	find src inject include tests bench workloads tools .ci -type f "$@" -not -path '*/__pycache__/*' | sort
}
case ${1:-} in
c) files -name '*.[ch]' ;;
python) files -name '*.py' ;;
shell) files '(' -name '*.sh' -o -path .ci/run -o -path bench/run -o -path tests/torch/run ')' ;;
*) sed -n '2s/^# //p' "$0" >&2; exit 2 ;;
esac
