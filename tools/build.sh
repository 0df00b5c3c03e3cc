#!/bin/sh
# Configures a build directory the first time (or when its options changed), then builds in it.
#
#   build.sh DIR [MESON OPTION...]           for example: build.sh build/asan -Db_sanitize=address
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$1
shift
meson=meson
"$meson" --version >/dev/null 2>&1 || meson=/usr/bin/meson # a broken one in front hides Debian's

# Says nothing unless it fails.
quietly()
{
	mkdir -p "$(dirname "$dir")"
	"$@" >"$dir.log" 2>&1 || {
		cat "$dir.log" >&2
		echo "spotter: meson could not configure $dir" >&2
		exit 1
	}
	rm -f "$dir.log"
}

options="CC=${CC:-} $*"
kept=$dir/meson-private/spotter-options
if [ -f "$dir/build.ninja" ] && [ "$(cat "$kept" 2>/dev/null)" = "$options" ]; then
	quietly ninja -C "$dir" build.ninja # again, if a meson.build changed
else
	rm -rf "$dir/meson-private" "$dir/meson-info" "$dir/build.ninja"
	quietly "$meson" setup "$dir" "$here" "$@"
	printf '%s' "$options" >"$kept"
fi
exec ninja -C "$dir" ${NINJA_QUIET---quiet}
