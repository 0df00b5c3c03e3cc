#!/usr/bin/env python3
"""Let a program that is linked here run on an older glibc: old_glibc.py VERSION DIR [CC...]

A program asks for the version of each glibc function that was newest where it was linked; since 2.34 that is
2.34 for every threaded program, which nodes of a cluster often do not have. glibc itself keeps the older versions,
a linker only never chooses them. So this writes link-time stand-ins of libc and libm into DIR, with the same
symbols, each at its newest version that is at most VERSION; link with -LDIR. Functions that are younger
than VERSION are missing from the stand-ins, so the link fails when one is used; src/base/old_glibc.c has those
that the program needs.
"""
import re
import subprocess
import sys
from pathlib import Path

LIBRARIES = ['libc', 'libm']


def number(version):
    return tuple(int(part) for part in version.split('.'))


def run(*command, **more):
    return subprocess.run(command, check=True, text=True, **more)


def linker_finds(cc, name):
    return Path(run(*cc, f'-print-file-name={name}', capture_output=True).stdout.strip())


def symbols(library, newest):
    """name: (version, type, size) of what library defines, none newer than `newest`."""
    out = run('readelf', '--dyn-syms', '--wide', str(library), capture_output=True).stdout
    found = {}
    for line in out.splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[6] == 'UND' or '@GLIBC_' not in fields[7]:
            continue
        name, version = re.fullmatch(r'([^@]+)@@?GLIBC_(.+)', fields[7]).groups()
        if fields[3] == 'TLS' or not re.fullmatch(r'[0-9.]+', version) or number(version) > newest:
            continue
        if name not in found or number(found[name][0]) < number(version):
            found[name] = version, fields[3], int(fields[2], 0)
    return found


def stand_in(cc, library, soname, newest, out):
    assembly, versions = ['.text'], set()
    for i, (name, (version, kind, size)) in enumerate(sorted(symbols(library, newest).items())):
        data = kind == 'OBJECT'
        assembly += [f'.section {".data" if data else ".text"}', f'.globl s{i}',
                     f'.type s{i}, %{"object" if data else "function"}', f's{i}:',
                     f'.symver s{i}, {name}@@GLIBC_{version}', f'.zero {max(size, 1) if data else 1}',
                     f'.size s{i}, {size if data else 1}']
        versions.add(version)
    assembly.append('.section .note.GNU-stack, "", %progbits')
    script = ''.join(f'GLIBC_{v} {{ }};\n' for v in sorted(versions, key=number))
    out.with_suffix('.s').write_text('\n'.join(assembly) + '\n', encoding='ascii')
    out.with_suffix('.map').write_text(script, encoding='ascii')
    run(*cc, '-shared', '-nostdlib', f'-Wl,-soname,{soname}', f'-Wl,--version-script={out.with_suffix(".map")}',
        '-o', str(out), str(out.with_suffix('.s')))


def main():
    newest, folder, cc = number(sys.argv[1]), Path(sys.argv[2]).resolve(), sys.argv[3:] or ['cc']
    folder.mkdir(parents=True, exist_ok=True)
    for name in LIBRARIES:
        script = linker_finds(cc, f'{name}.so').read_text(encoding='ascii')
        real = Path(re.search(rf'\S*/{name}\.so\.\d+', script).group())
        made = folder / f'{name}-old.so'
        stand_in(cc, real, real.name, newest, made)
        (folder / f'{name}.so').write_text(script.replace(str(real), str(made)), encoding='ascii')


if __name__ == '__main__':
    main()
