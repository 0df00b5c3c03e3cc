#!/bin/sh
# Run every libFuzzer target of tests/fuzz/ on its corpus for a while. What made one fail is left in build/fuzz/.
# The last line counts the targets: "N passed, N failed, N skipped".
#
#   fuzz.sh [--all] SECONDS       for each target; --all: shared among them
set -eu
cd "$(dirname "$0")/.."
share=
[ "$1" != --all ] || { share=yes; shift; }
seconds=$1
dir=build/fuzz
CC=clang tools/build.sh $dir -Dfuzz=true -Dbpf=disabled -Db_sanitize=address,undefined -Db_lundef=false

if [ -n "$share" ]; then
	seconds=$((seconds / $(find $dir/tests/fuzz -maxdepth 1 -name 'fuzz_*' -type f -executable | wc -l)))
fi

passed=0 failed=0
for target in $dir/tests/fuzz/fuzz_*; do
	[ -x "$target" ] && [ -f "$target" ] || continue
	name=$(basename "$target")
	corpus=tests/fuzz/corpus/${name#fuzz_}
	found=$dir/corpus-$name # what it discovers goes here, never into the source tree
	mkdir -p "$found"
	[ -d "$corpus" ] || corpus=
	echo "$name, $seconds s"
	if "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-verbosity=0 -artifact_prefix="$dir/$name-" "$found" $corpus </dev/null 2>"$dir/$name.log"; then
		grep -h stat::number_of_executed_units "$dir/$name.log" || true
		passed=$((passed + 1))
	else
		tail -n 40 "$dir/$name.log" >&2
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
