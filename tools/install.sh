#!/bin/sh
# make install and make uninstall: what meson knows to be installed, under PREFIX and below DESTDIR.
#
#   install.sh [--remove] BUILD_DIR PREFIX DESTDIR
set -eu
cd "$(dirname "$0")/.."
remove=
[ "$1" != --remove ] || { remove=yes; shift; }
build=$1 prefix=$2 destdir=$3
meson=meson
"$meson" --version >/dev/null 2>&1 || meson=/usr/bin/meson

[ -f "$build/build.ninja" ] || { echo "spotter: nothing is built in $build; run make first" >&2; exit 1; }
"$meson" configure "$build" -Dprefix="$prefix"
if [ -z "$remove" ]; then
	DESTDIR=$destdir "$meson" install -C "$build" --quiet
	echo "installed $destdir$prefix/bin/spotter"
	exit
fi
ninja -C "$build" --quiet build.ninja >/dev/null # learns the prefix
"$meson" introspect --installed "$build" | tr ',' '\n' | sed -n 's/.*": *"\(.*\)".*/\1/p' |
	while read -r path; do
		rm -f "$destdir$path"
		case ${path%/*} in
		*/spotter) rmdir "$destdir${path%/*}" 2>/dev/null || true ;; # ours alone
		esac
	done
echo "removed $destdir$prefix/bin/spotter"
