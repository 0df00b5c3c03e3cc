"""Rings of a test, read with struct and nothing of the program's own code: the layout is inject/wire.h."""
import struct
from pathlib import Path

NONE = -(1 << 63)
KINDS = {1: 'step', 2: 'epoch', 3: 'checkpoint', 4: 'gc', 5: 'range', 6: 'mark'}
COLUMNS = {
    'step': ('index', 'phase', 'epoch', 'batch', 'wait'), 'epoch': ('index', 'phase'),
    'checkpoint': ('bytes',), 'gc': ('generation', 'collected'), 'range': ('name', 'depth'),
    'mark': ('name', 'value'),
}
TEXTS = {100: 'string', 101: 'fact', 102: 'notice'}
HEADER = struct.Struct('@QIIIIIIQQ16xQQQ40xQ56x')
RECORD = struct.Struct('@QQHHI40s')


class Row:
    """One event: t, dur and the columns of its kind; None where there is no value."""

    def __init__(self, kind, t, dur, args):
        self.kind, self.t, self.dur = kind, t, dur
        for name, value in zip(COLUMNS[kind], args):
            setattr(self, name, None if value == NONE else value)

    def __repr__(self):
        return f'{self.kind}({self.__dict__})'


class Ring:
    """A ring file: rows, facts (a dict), notices."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        (magic, version, header, size, self.capacity, self.pid, self.tid, self.start, self.pid_ns,
         self.head, self.dropped, self.cost, self.tail) = HEADER.unpack_from(data)
        assert magic == 0x474E495254505331 and version == 1 and header == 4096 and size == 64
        assert len(data) == header + size * self.capacity
        self.rows, self.facts, self.notices, names, text = [], {}, [], {}, b''
        for i in range(max(0, self.head - self.capacity), self.head):
            at = header + size * (i % self.capacity)
            t, dur, kind, flags, aux, raw = RECORD.unpack_from(data, at)
            assert t <= 1 << 62 and dur <= 1 << 62
            if kind in TEXTS:
                text += raw[:flags & 0x7FFF]
                if not flags & 0x8000:
                    self._text(TEXTS[kind], aux, text.decode(), names)
                    text = b''
                continue
            row = Row(KINDS[kind], t, dur, struct.unpack('@5q', raw))
            if hasattr(row, 'name'):
                row.name = names[row.name]
            self.rows.append(row)

    def _text(self, kind, aux, text, names):
        if kind == 'string':
            names[aux] = text
        elif kind == 'notice':
            self.notices.append(text)
        else:
            key, value = text.split('=', 1)
            self.facts[key] = value

    def of(self, kind, phase=None):
        return [r for r in self.rows if r.kind == kind and (phase is None or r.phase == phase)]


def read_all(directory):
    return [Ring(path) for path in sorted(Path(directory).glob('*.ring'))]
