#!/bin/sh
# Debian packages by the groups of packages.txt.
#
#   packages.sh list GROUP...      the packages of these groups
#   packages.sh missing GROUP...   those that are not installed
#   packages.sh check GROUP...     fails with the apt-get line to run if one is missing
#   packages.sh install GROUP...   installs what is missing, as root or through sudo
#
# SPOTTER_PACKAGES=skip leaves packages alone, for machines that have the libraries from elsewhere.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)

list()
{
	for group in "$@"; do
		found=$(awk -v want="[$group]" '
			/^\[/ { in_group = ($1 == want); next }
			in_group && NF && $1 !~ /^#/ { print $1 }' "$here/packages.txt")
		[ -n "$found" ] || { echo "packages.sh: no group '$group' in packages.txt" >&2; exit 2; }
		echo "$found"
	done
}

installed()
{
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing()
{
	for package in $(list "$@"); do
		installed "$package" || echo "$package"
	done
}

# What to tell a person who has to do it: $1 is why, the rest the packages.
refuse()
{
	why=$1
	shift
	cat >&2 <<END
spotter needs Debian packages that are not installed, and $why.
Run this as root, then try again:

  apt-get update && apt-get install -y --no-install-recommends $*

END
	exit 1
}

run_apt()
{
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null
}

install()
{
	want=$(missing "$@" | tr '\n' ' ')
	[ -n "$want" ] || return 0
	if [ "$(id -u)" = 0 ]; then
		as_root=
	elif command -v sudo >/dev/null && sudo -v; then
		as_root=sudo
	else
		refuse "this user may not install them (neither root nor sudo)" $want
	fi
	echo "Installing $want" >&2
	run_apt update >&2 || echo "apt-get update failed; trying with the package lists at hand" >&2
	run_apt install -y --no-install-recommends $want >&2 || refuse "apt-get could not install them" $want
}

[ $# -ge 2 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
verb=$1
shift
case $verb in
list) list "$@" ;;
missing | check | install)
	list "$@" >/dev/null
	if [ "${SPOTTER_PACKAGES:-}" = skip ] || ! command -v dpkg-query >/dev/null; then
		exit 0
	fi
	if [ "$verb" != check ]; then
		"$verb" "$@"
		exit
	fi
	want=$(missing "$@" | tr '\n' ' ')
	[ -z "$want" ] || refuse "plain 'make' installs nothing ('make packages' does)" $want
	;;
*) echo "packages.sh: no verb '$verb'" >&2; exit 2 ;;
esac
