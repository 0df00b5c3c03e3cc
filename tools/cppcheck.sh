#!/bin/sh
# Static analysis of the program's own C, as the compiler sees it (its defines and include paths). What is switched
# off is named here with the reason; single lines are excused where they stand, in a comment.
set -eu
cd "$(dirname "$0")/.."
tools/build.sh build
# shiftTooManyBitsSigned: both compilers shift signed numbers arithmetically, and the codec means that.
# tests: cmocka's macros hide the control flow from it.
cppcheck --quiet --project=build/compile_commands.json --std=c11 --inline-suppr \
	--enable=warning,performance,portability --error-exitcode=1 \
	--suppress=shiftTooManyBitsSigned --suppress='*:tests/*' --suppress='*:*/tests/*' \
	-j 2
