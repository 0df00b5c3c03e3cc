"""A decoder of recordings written from doc/recording.md alone: it must read what spotter writes."""

import ctypes
import ctypes.util
import pathlib
import sqlite3
import struct
import zlib

import pytest

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "fixtures" / "recording"
WORD = 1 << 64


def signed(u):
    u %= WORD
    return u - WORD if u >= WORD // 2 else u


def unzigzag(u):
    return (u >> 1) ^ -(u & 1)


class Bytes:
    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            b = self.byte()
            value |= (b & 127) << shift
            shift += 7
            if b < 128:
                return value

    def rest(self):
        data, self.at = self.data[self.at:], len(self.data)
        return data


def unzstd(data, size):
    name = ctypes.util.find_library("zstd")
    if not name:
        pytest.skip("libzstd is not installed")
    zstd = ctypes.CDLL(name)
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(size)
    assert zstd.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data))) == size
    return out.raw


def unseal(blob):
    assert struct.unpack("<I", blob[-4:])[0] == zlib.crc32(blob[:-4])
    return Bytes(blob[:-4])


def rice(data, m):
    stream, at, out = int.from_bytes(data, "little"), 0, []

    def take(n):
        nonlocal at
        value = stream >> at & (1 << n) - 1
        at += n
        return value

    for i in range(m):
        if i % 64 == 0:
            k = take(6)
        if k == 63:
            out.append(0)
            continue
        q = 0
        while not take(1):
            q += 1
        out.append(take(64) if q == 24 else (q << k) + take(k))
    assert (at + 7) // 8 == len(data)
    return out


def planes(b, m, packed):
    width = b.byte()
    data = b.rest()
    if packed:
        data = unzstd(data, width * m)
    assert len(data) == width * m
    return [sum(data[k * m + i] << 8 * k for k in range(width)) for i in range(m)]


def integers(b, n):
    head = b.byte()
    form, packing, values = head & 3, head >> 2 & 3, [unzigzag(b.varint())]
    if form == 0:
        return values * n
    divisor = b.varint() if head & 16 else 1
    residuals = rice(b.rest(), n - 1) if packing == 0 else planes(b, n - 1, packing == 2)
    delta = 0
    for x in (unzigzag(u) * divisor for u in residuals):
        delta = delta + x if form == 3 else x
        values.append(signed((values[0] if form == 1 else values[-1]) + delta))
    return values


def doubles(b, n):
    k = b.byte()
    if k < 10:
        return [i / 10**k for i in integers(b, n)]
    return [struct.unpack("<d", struct.pack("<q", i if i >= 0 else i ^ (1 << 63) - 1))[0] for i in integers(b, n)]


def present(b, times):
    at, out = 0, []
    for _ in range(b.varint()):
        at += b.varint()
        length = b.varint()
        out += times[at:at + length]
        at += length
    return out


def tail(db):
    """Series to [(time, value)], doubles as their bits."""
    out, known, ids, now = {}, {}, [], 0
    for (blob,) in db.execute("SELECT data FROM tail WHERE batch = (SELECT coalesce(max(id), 0) + 1 FROM batch)"
                              " ORDER BY id"):
        b = unseal(blob)
        flags = b.byte()
        if flags & 1:
            known, ids, now = {}, [], 0
        if flags & 2:
            size = b.varint()
            b = Bytes(unzstd(b.rest(), size))
        for _ in range(b.varint()):
            now += b.varint()
            count = b.varint()
            if count:
                ids, before = [], -1
                for _ in range(count - 1):
                    before += unzigzag(b.varint()) + 1
                    ids.append(before)
            for i in ids:
                known[i] = signed(known.get(i, 0) + unzigzag(b.varint()))
                out.setdefault(i, {})[now] = known[i]
        assert b.at == len(b.data)
    return out


def samples(db):
    """Metric name to {time: value}, everything in the recording."""
    rows = db.execute("SELECT s.id, m.name, m.type FROM series s JOIN metric m ON m.id = s.metric").fetchall()
    held, out = tail(db), {}
    for series, name, kind in rows:
        found = out.setdefault(name, {})
        for batch, ticks, blob in db.execute("SELECT id, n, times FROM batch ORDER BY id"):
            times = integers(unseal(blob), ticks)
            for n, t0, t1, first, last, data in db.execute(
                    "SELECT n, t0, t1, first, last, data FROM chunk WHERE id = ?", (batch << 32 | series,)):
                b = unseal(data)
                at = present(b, times) if n < ticks else times
                values = (doubles if kind == "f64" else integers)(b, n)
                assert len(at) == len(values) == n
                assert (at[0], at[-1]) == (t0 or times[0], t1 or times[-1])
                assert (values[0], values[-1]) == (first, last)
                found.update(zip(at, values))
        for t, v in held.get(series, {}).items():
            found[t] = struct.unpack("<d", struct.pack("<q", v))[0] if kind == "f64" else v
    return out


def events(db, name):
    out = []
    for columns, n, blob in db.execute("SELECT columns, n, data FROM event JOIN track ON track.id = track"
                                       " WHERE name = ? ORDER BY event.id", (name,)):
        b, read = unseal(blob), []
        for _ in columns.split(" "):
            size = b.varint()
            read.append(integers(Bytes(b.data[b.at:b.at + size]), n))
            b.at += size
        assert b.at == len(b.data)
        out += zip(*read)
    return out


def open_ro(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    assert db.execute("PRAGMA application_id").fetchone() == (0x53504F54,)
    assert db.execute("PRAGMA user_version").fetchone()[0] & 0xFFFF == 1
    return db


def expected(series, tick):
    """What tests/unit/recording_fixture.h puts; None for a gap."""
    if series % 3 == 1 and tick // 7 % 2:
        return None
    value = tick * 10000000 * series if series % 2 else tick * 2654435761 % (1 << 32) % 1000 * 4096
    return value % 1000 / 100 if series == 2 else value


NAMES = ["memory.free", "cpu.user", "sched.load1", "cpu.system", "memory.cached"]


@pytest.mark.parametrize("name", ["v1-finished", "v1-growing"])
def test_fixtures(name):
    db = open_ro(FIXTURES / f"{name}.spot")
    found = samples(db)
    for series, metric in enumerate(NAMES):
        want = {10**9 + tick * 10**8 + tick % 3: expected(series, tick) for tick in range(90)}
        want = {t: v for t, v in want.items() if v is not None}
        got = found[metric]
        if name == "v1-growing":  # what came after the last flush is lost
            assert len(got) >= len(want) - 5
            want = {t: v for t, v in want.items() if t <= max(got)}
        assert got == want
    steps = events(db, "step")
    assert [row[2] for row in steps] == list(range(len(steps))) and len(steps) >= 85
    assert steps[7][6] == -2**63 and steps[8][6] == 8000 and steps[8][1] == 90 * 10**6
    assert db.execute("SELECT reason FROM gap").fetchall() == [("no permission",)]


def test_what_spotter_writes(spotter, tmp_path):
    import json
    import subprocess

    path = tmp_path / "run.spot"
    subprocess.run([spotter, "run", "--interval", "20ms", "-o", path, "--", "sleep", "1.2"], check=True,
                   capture_output=True, timeout=60)
    db = open_ro(path)
    found = samples(db)
    assert len(found["cpu.user"]) > 30
    count, = db.execute("SELECT value FROM run WHERE key = 'recording.samples'").fetchone()
    total, = db.execute("SELECT sum(n) FROM chunk").fetchone()
    assert total == int(count)
    assert db.execute("SELECT count(*) FROM tail").fetchone() == (0,)
    # The summaries say what the samples say.
    for name, low, high, sum_, chunk, ticks, data in db.execute(
            "SELECT m.name, c.min, c.max, c.sum, c.n, b.n, c.data FROM chunk c JOIN batch b ON b.id = c.id >> 32"
            " JOIN series s ON s.id = c.id & 4294967295 JOIN metric m ON m.id = s.metric"
            " WHERE m.kind = 'gauge' AND m.type = 'i64'"):
        b = unseal(data)
        if chunk < ticks:
            present(b, list(range(ticks)))
        values = integers(b, chunk)
        assert (low, high, sum_) == (min(values), max(values), sum(values)), name
    assert json.loads(db.execute("SELECT value FROM run WHERE key = 'command'").fetchone()[0])[0] == "sleep"
