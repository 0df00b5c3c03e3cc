#!/bin/sh
# Prints the Python to use for a purpose: the first one that has the module it takes. A python3 in PATH that
# is not Debian's hides what apt installed for Debian's, so both are asked.
#
#   python.sh MODULE      fails silently when none has it
set -eu
for python in ${SPOTTER_PYTHON:-} python3 /usr/bin/python3; do
	if "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)' \
		"$1" 2>/dev/null; then
		command -v "$python"
		exit
	fi
done
exit 1
