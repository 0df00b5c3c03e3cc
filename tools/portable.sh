#!/bin/sh
# make portable: build/portable/spotter, one file that needs nothing but glibc. Says which glibc, and fails if
# anything else crept in.
set -eu
cd "$(dirname "$0")/.."
dir=build/portable
tools/build.sh $dir -Dportable=true -Dbpf=enabled
strip $dir/spotter

needed=$(objdump -p $dir/spotter | awk '$1 == "NEEDED" { print $2 }')
for library in $needed; do
	case $library in
	libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux*) ;;
	*) echo "spotter: $dir/spotter needs $library, which is not glibc's" >&2; exit 1 ;;
	esac
done
# An old glibc does not run constructors of a program linked like this: there must be none but the compiler's own.
constructors=$(readelf --sections --wide $dir/spotter | awk '{ for (i = 1; i < NF; i++) if ($i == ".init_array") print $(i + 4) }')
[ $((0x${constructors:-0})) -le 8 ] || { echo "spotter: $dir/spotter has constructors" >&2; exit 1; }

glibc=$(objdump -T $dir/spotter | grep -o 'GLIBC_[0-9.]*' | sort -u -V | tail -n 1)
echo "$dir/spotter: $(wc -c <$dir/spotter) bytes, needs ${glibc#GLIBC_} or newer of glibc and nothing else"
