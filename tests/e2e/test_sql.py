"""Plain SQL over a recording: spotter.so in the stock sqlite3 shell and in a program that has an SQLite of its own."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from recordings import (SAMPLES, SECOND, STEPS, T0, TICKS, make, recording, run, tool)  # noqa: F401


@pytest.fixture(scope='session')
def extension(spotter):
    path = Path(spotter).parent / 'spotter.so'
    if not path.exists():
        pytest.skip('spotter.so is not beside the program: it comes with the build directory')
    if b'__asan_init' in path.read_bytes() and 'libasan' not in os.environ.get('LD_PRELOAD', ''):
        pytest.skip('a sanitized extension needs LD_PRELOAD=libasan.so in the program that loads it')
    return str(path.with_suffix(''))


@pytest.fixture
def sql(extension, recording):  # noqa: F811
    if not shutil.which('sqlite3'):
        pytest.skip('the sqlite3 shell is not installed')

    def ask(query, file=recording):
        out = run('sqlite3', '-json', '-cmd', f'.load {extension}', str(file), query)
        assert out.returncode == 0, out.stderr
        return json.loads(out.stdout or '[]')

    return ask


def loadable(extension, code, *arguments):
    """Run code in a Python whose sqlite3 loads extensions: `db(path)` gives a connection."""
    begin = ('import os, sqlite3, sys\n'
             'def db(path):\n'
             '    c = sqlite3.connect(path, isolation_level=None)\n'
             '    c.enable_load_extension(True)\n'
             f'    c.load_extension({extension!r})\n'
             '    return c\n')
    can = 'import sqlite3; sqlite3.connect(":memory:").enable_load_extension'
    for python in (sys.executable, '/usr/bin/python3'):
        if shutil.which(python) and run(python, '-c', can).returncode == 0:
            out = run(python, '-c', begin + code, *arguments)
            assert out.returncode == 0, out.stderr
            return out.stdout
    return pytest.skip('no Python here whose sqlite3 loads extensions')


def count(sql, table, where='1'):
    return sql(f'SELECT count(*) AS n FROM {table} WHERE {where}')[0]['n']


def test_all_samples(sql):
    assert count(sql, 'samples') == SAMPLES
    first = sql("SELECT * FROM samples WHERE metric = 'cpu.user' AND entity_kind = 'job' LIMIT 1")[0]
    assert first.pop('time').startswith('20')
    assert first == {'t_ns': T0, 'entity': 'python3 train.py', 'entity_kind': 'job', 'entity_id': 7,
                     'entity_key': 4001, 'metric': 'cpu.user', 'value': 0, 'unit': 'ns',
                     'source': '/proc/PID/stat'}


def test_samples_come_in_the_order_of_time(sql):
    times = [row['t_ns'] for row in sql('SELECT t_ns FROM samples')]
    assert times == sorted(times)


@pytest.mark.parametrize('where, expected', [
    (f't_ns >= {T0 + SECOND} AND t_ns < {T0 + 3 * SECOND}', 60),
    (f't_ns > {T0 + SECOND} AND t_ns <= {T0 + 3 * SECOND}', 60),
    (f't_ns BETWEEN {T0} AND {T0}', 30),
    (f't_ns = {T0}', 30),
    (f"t_ns = '{T0}'", 30),
    (f't_ns = {T0} + 0.5', 0),
    (f't_ns > {T0} - 0.5 AND t_ns < {T0} + 0.5', 30),
    ('t_ns < 0', 0),
    ('t_ns > -1', SAMPLES),
    ('t_ns < 9.3e18', SAMPLES),
    ('t_ns > 9.3e18', 0),
    ('t_ns < 9223372036854775807', SAMPLES),
    ('t_ns = NULL', 0),
    ("t_ns < 'later'", SAMPLES),
    ("metric = 'memory.rss'", 420),
    ("metric = 'memory.rss' AND entity_kind = 'process' AND entity_key = 4002", TICKS),
    ("metric = 'cpu.user' AND metric = 'cpu.idle'", 0),
    ("metric IN ('cpu.run_delay', 'memory.total', 'cpu.run_delay')", 2 * TICKS),
    ("metric = 'CPU.RUN_DELAY'", 0),
    ("metric = 'CPU.RUN_DELAY' COLLATE NOCASE", TICKS),
    ("metric LIKE 'io.%'", 2 * TICKS),
    ('metric = 5', 0),
    ("entity = 'cpu3'", 2 * TICKS),
    ("entity_kind = 'cpu'", 8 * TICKS),
    ('entity_id = 6', TICKS - 10),
    ("entity_id = '6'", TICKS - 10),
    ('entity_id = 6.0', TICKS - 10),
    ('entity_id = 6.5', 0),
    ('entity_id = 6 AND entity_id = 7', 0),
    ("unit = 'bytes' AND value > 12e9", TICKS),
])
def test_conditions(sql, where, expected):
    """Each is looked up by where that can be done, so each must give what a look at every row would."""
    assert count(sql, 'samples', where) == expected


def test_conditions_are_looked_up_by(sql, extension):
    plan = run('sqlite3', '-cmd', f'.load {extension}', ':memory:', 'EXPLAIN QUERY PLAN SELECT * FROM samples '
               "WHERE metric = 'a' AND t_ns BETWEEN 1 AND 2 AND entity_id = 3 ORDER BY t_ns").stdout
    assert 'm=i=tgtl' in plan
    assert 'TEMP B-TREE' not in plan, 'sorted although it comes in order'


def test_order_the_other_way(sql):
    times = [row['t_ns'] for row in sql("SELECT t_ns FROM samples WHERE metric = 'memory.total' ORDER BY t_ns "
                                        'DESC')]
    assert times == [T0 + i * SECOND for i in reversed(range(TICKS))]


def test_a_rate_by_window_function(sql):
    """The example of the paper."""
    rates = sql("SELECT (value - lag(value) OVER w) * 1.0 / (t_ns - lag(t_ns) OVER w) AS cores FROM samples "
                "WHERE metric = 'cpu.user' AND entity_kind = 'host' WINDOW w AS (ORDER BY t_ns)")
    assert [row['cores'] for row in rates] == [None] + [1.5] * (TICKS - 1)


def test_steps(sql):
    assert count(sql, 'steps') == STEPS
    step = sql('SELECT * FROM steps WHERE step = 11')[0]
    del step['time']
    assert step == {'t_ns': T0 + SECOND + SECOND // 10, 'dur_ns': 80_000_000, 'entity': 'python3',
                    'entity_kind': 'process', 'entity_id': 8, 'entity_key': 4001, 'step': 11, 'phase': 'train',
                    'epoch': 0, 'batch': 64, 'input_wait_ns': 20_000_000}
    assert count(sql, 'steps', 'batch IS NULL') == STEPS // 100
    assert count(sql, 'steps', "phase = 'evaluation'") == STEPS // 10
    assert count(sql, 'steps', f't_ns >= {T0 + 10 * SECOND}') == STEPS - 100


def test_events(sql):
    assert {row['track']: row['n'] for row in sql('SELECT track, count(*) AS n FROM events GROUP BY 1')} == {
        'step': STEPS, 'epoch': 2, 'checkpoint': 1, 'gc': 6, 'mark': 1}
    mark = sql("SELECT name, json_extract(args, '$.value') AS value FROM events WHERE track = 'mark'")
    assert mark == [{'name': 'learning rate, "halved"', 'value': 42}]
    assert count(sql, 'events', "track = 'gc' AND entity_key = 4001") == 6


def test_every_kind_has_a_table(sql):
    assert [count(sql, t) for t in ('epochs', 'checkpoints', 'gc_pauses', 'ranges', 'marks')] == [2, 1, 6, 0, 1]


def test_join_of_steps_and_samples(sql):
    rows = sql('SELECT e.epoch, count(DISTINCT s.t_ns) AS ticks FROM epochs e JOIN samples s ON s.t_ns >= e.t_ns '
               "AND s.t_ns < e.t_ns + e.dur_ns WHERE s.metric = 'memory.rss' GROUP BY 1")
    assert rows == [{'epoch': 0, 'ticks': 60}, {'epoch': 1, 'ticks': 60}]


def test_beside_the_tables_of_the_file(sql):
    rows = sql("SELECT r.value, s.value AS v FROM run r, samples s WHERE r.key = 'command_line' AND "
               f"s.metric = 'memory.rss' AND s.entity_kind = 'job' AND s.t_ns = {T0}")
    assert rows == [{'value': 'python3 train.py', 'v': 100_000_000}]


def test_two_recordings_in_one_query(sql, spotter, recording, tmp_path):  # noqa: F811
    other = make(spotter, tmp_path / 'other.spot', '--ticks', '10')
    rows = sql(f"SELECT count(*) AS n FROM samples a JOIN samples('{other}') b USING (t_ns, metric, entity_kind) "
               "WHERE a.metric = 'memory.rss' AND a.entity_kind = 'job'")
    assert rows == [{'n': 10}]
    assert count(sql, f"steps('{other}')") == 100


def test_without_a_recording(sql, tmp_path):
    for file, query, words in ((':memory:', 'SELECT * FROM samples', 'no recording is open'),
                               (':memory:', "SELECT * FROM samples('nope.spot')", 'No such file'),
                               (':memory:', f"SELECT * FROM steps('{__file__}')", 'not a recording'),
                               (tmp_path / 'new.db', 'CREATE TABLE t(a); SELECT * FROM samples', 'not a recording')):
        with pytest.raises(AssertionError, match=words):
            sql(query, file)


def test_it_cannot_be_written_to(sql, recording):  # noqa: F811
    before = Path(recording).read_bytes()
    with pytest.raises(AssertionError, match='may not be modified'):
        sql("DELETE FROM samples WHERE metric = 'cpu.user'")
    assert Path(recording).read_bytes() == before


def test_of_a_recording_that_was_cut_off(sql, spotter, tmp_path):
    assert count(sql, 'samples') == count(lambda q: sql(q, make(spotter, tmp_path / 'cut.spot', '--unfinished')),
                                          'samples')


def test_of_a_recording_that_grows(extension, spotter, tmp_path):
    path = tmp_path / 'run.spot'
    p = subprocess.Popen([tool(spotter), '--live', '--ticks', '1000', '--interval-ms', '20', path])
    try:
        out = loadable(extension, '''
import time
deadline = time.monotonic() + 30
while time.monotonic() < deadline:
    try:
        c = db("file:" + sys.argv[1])
        c.execute("SELECT count(*) FROM run").fetchone()
        break
    except sqlite3.Error:
        time.sleep(0.05)
seen = []
while len(seen) < 3 and time.monotonic() < deadline:
    n = c.execute("SELECT count(*) FROM samples WHERE metric = 'memory.total'").fetchone()[0]
    if not seen or n > seen[-1]:
        seen.append(n)
print(len(seen))
'''.replace('"file:" + ', ''), str(path))
    finally:
        p.kill()
        p.wait()
    assert out == '3\n'


def test_the_locks_of_the_host_stay(extension, recording):  # noqa: F811
    """What a second copy of SQLite in the process would break: see src/extension/extension.c."""
    if not Path('/proc/locks').exists():
        pytest.skip('no /proc/locks')
    out = loadable(extension, '''
def locks():
    inode, pid = os.stat(sys.argv[1]).st_ino, os.getpid()
    return sum(f":{inode} " in line and f" {pid} " in line for line in open("/proc/locks"))
host, other = db(sys.argv[1]), db(":memory:")
host.execute("BEGIN")
host.execute("SELECT count(*) FROM run").fetchone()
print(locks() > 0)
host.execute("SELECT count(*) FROM samples").fetchone()
print(locks() > 0)
other.execute("SELECT count(*) FROM samples(?)", sys.argv[1:]).fetchone()
other.close()
print(locks() > 0)
host.execute("COMMIT")
print(locks())
''', recording)
    assert out.split() == ['True', 'True', 'True', '0']


def test_the_lock_of_a_host_that_writes_stays(extension, spotter, tmp_path):
    path = make(spotter, tmp_path / 'run.spot')
    out = loadable(extension, '''
def locks():
    inode, pid = os.stat(sys.argv[1]).st_ino, os.getpid()
    return sum(f":{inode} " in line and f" {pid} " in line for line in open("/proc/locks"))
host = db(sys.argv[1])
host.execute("BEGIN EXCLUSIVE")
before = locks()
try:
    host.execute("SELECT count(*) FROM samples").fetchone()
except sqlite3.Error:
    pass
host.execute("SELECT 1").fetchone()
print(before > 0 and locks() == before)
''', path)
    assert out == 'True\n'


def test_cursors_in_the_middle_and_a_connection_that_closes(extension, recording):  # noqa: F811
    out = loadable(extension, '''
c = db(sys.argv[1])
a = c.execute("SELECT t_ns FROM samples")
b = c.execute("SELECT t_ns FROM steps")
a.fetchone(), b.fetchone()
print(c.execute("SELECT count(*) FROM samples").fetchone()[0])
print(len(a.fetchall()), len(b.fetchall()))
d = c.execute("SELECT t_ns FROM samples")
d.fetchone()
c.close()
''', recording)
    assert out.split() == [str(SAMPLES), str(SAMPLES - 1), str(STEPS - 1)]


def test_a_recording_that_was_replaced(extension, spotter, tmp_path):
    path = tmp_path / 'run.spot'
    make(spotter, path, '--ticks', '10')
    make(spotter, tmp_path / 'next.spot', '--ticks', '20')
    out = loadable(extension, '''
c = db(":memory:")
query = "SELECT count(*) FROM samples(?) WHERE metric = 'memory.total'"
print(c.execute(query, sys.argv[1:2]).fetchone()[0])
os.rename(sys.argv[2], sys.argv[1])
print(c.execute(query, sys.argv[1:2]).fetchone()[0])
''', str(path), str(tmp_path / 'next.spot'))
    assert out.split() == ['10', '20']


def test_damaged_recordings_never_crash_the_host(extension, recording, tmp_path):  # noqa: F811
    data = Path(recording).read_bytes()
    for i in range(24):
        copy = bytearray(data if i % 3 else data[:len(data) * (i + 1) // 25])
        for k in range(i):
            if copy:
                copy[(i * 7919 + k * 104729) % len(copy)] ^= 1 << (k % 8)
        (tmp_path / f'{i}.spot').write_bytes(copy)
    out = loadable(extension, '''
for name in sorted(os.listdir(sys.argv[1])):
    for table in ("samples", "events", "steps", "marks"):
        try:
            db(os.path.join(sys.argv[1], name)).execute(f"SELECT * FROM {table}").fetchall()
        except sqlite3.Error:
            pass
print("alive")
''', str(tmp_path))
    assert out == 'alive\n'
