"""Loads of known size under spotter: what it says against what the load measured of itself.

CPU and memory to one percent, bytes to the byte, children that live 5 ms counted; with both task readers.
"""
import json
import sqlite3
import subprocess

import pytest

CPU = MEMORY = 0.01


class Said:
    """One load under spotter: its own words, and the report of `run` and of `report`."""

    def __init__(self, spotter, reader, folder, command, options=()):
        recording = folder / 'run.spot'
        out = subprocess.run(
            [spotter, 'run', '-o', recording, '--task-reader', reader, '--json', '--report', folder / 'report.json',
             *options, '--', *command], cwd=folder, capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL, check=True)
        self.truth = json.loads(out.stdout)
        self.report = json.loads((folder / 'report.json').read_text(encoding='utf-8'))
        again = subprocess.run([spotter, 'report', recording, '--json'], capture_output=True, text=True, timeout=60,
                               stdin=subprocess.DEVNULL, check=True)
        self.again = json.loads(again.stdout)
        with sqlite3.connect(f'file:{recording}?mode=ro', uri=True) as db:
            self.facts = dict(db.execute('SELECT key, value FROM run'))

    def cpu_s(self):
        assert self.again['cpu'] == self.report['cpu']
        return self.report['cpu']['user_s'] + self.report['cpu']['system_s']


@pytest.fixture(params=['proc', 'bpf'])
def reader(request, spotter, tmp_path_factory):
    """Each task reader that works here."""
    recording = tmp_path_factory.mktemp('reader') / 'r.spot'
    subprocess.run([spotter, 'run', '-q', '-o', recording, '--task-reader', request.param, '--', 'true'],
                   capture_output=True, timeout=60, stdin=subprocess.DEVNULL, check=True)
    with sqlite3.connect(f'file:{recording}?mode=ro', uri=True) as db:
        if not db.execute("SELECT 1 FROM run WHERE key='task_reader'").fetchone():
            why = db.execute("SELECT text FROM notice WHERE text LIKE 'job:%'").fetchone()
            assert request.param == 'bpf', why
            pytest.skip(str(why))
    return request.param


@pytest.fixture
def run(spotter, load, reader, tmp_path):
    def start(*arguments, options=()):
        said = Said(spotter, reader, tmp_path, [load, *map(str, arguments)], options)
        assert said.facts['task_reader'] == reader
        return said
    return start


def near(value, truth, share):
    assert abs(value - truth) <= share * truth, f'{value} is not within {share:.0%} of {truth}'


def test_one_and_a_half_cores(run):
    said = run('burn', 1.5, 3)
    assert said.truth['clocks_s'] >= 4.5
    near(said.cpu_s(), said.truth['clocks_s'], CPU)
    near(said.report['cpu']['cores_mean'] * said.report['run']['wall_s'], said.truth['clocks_s'], 2 * CPU)


def test_memory(run):
    said = run('memory', 500, 2.5)
    near(said.report['memory']['peak_rss_bytes'], said.truth['memory_bytes'], MEMORY)


def test_bytes_read_and_written(run):
    said = run('io', 100)
    assert said.report['io']['read_bytes'] == said.truth['read_bytes'] >= 100_000_000
    assert said.report['io']['written_bytes'] == said.truth['written_bytes'] > 100_000_000


def test_children_of_five_milliseconds(run):
    said = run('children', 200, 5)
    near(said.cpu_s(), said.truth['cpu_s'], CPU)
    assert said.cpu_s() >= said.truth['clocks_s'] * (1 - CPU) and said.truth['clocks_s'] >= 1


def test_children_of_children_and_orphans(run):
    said = run('generations', 300)
    assert said.truth['clocks_s'] >= 0.9
    near(said.cpu_s(), said.truth['clocks_s'], CPU)


def test_threads_that_end(run):
    said = run('threads', 100, 10)
    near(said.cpu_s(), said.truth['clocks_s'], CPU)


def test_twenty_samples_a_second_say_the_same(run):
    said = run('children', 100, 5, options=['--interval', '50ms'])
    near(said.cpu_s(), said.truth['cpu_s'], CPU)
