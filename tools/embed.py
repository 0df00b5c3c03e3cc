#!/usr/bin/env python3
"""Turn files into C: embed.py SYMBOL OUT.c NAME=PATH... writes `const struct embedded_file SYMBOL[]`."""
import sys


def main():
    symbol, out, entries = sys.argv[1], sys.argv[2], sys.argv[3:]
    lines = ['/* Made by tools/embed.py; do not edit. */', '#include "base/embed.h"', '']
    table = []
    for i, entry in enumerate(entries):
        name, path = entry.split('=', 1)
        with open(path, 'rb') as f:
            data = f.read()
        lines.append(f'static const unsigned char data{i}[] = {{')
        for at in range(0, len(data), 16):
            lines.append('\t' + ', '.join(f'0x{b:02x}' for b in data[at:at + 16]) + ',')
        lines.append('\t0 };')
        table.append(f'\t{{ "{name}", data{i}, {len(data)} }},')
    lines += ['', f'const struct embedded_file {symbol}[] = {{', *table, '\t{ 0, 0, 0 } };', '']
    with open(out, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines))


if __name__ == '__main__':
    main()
