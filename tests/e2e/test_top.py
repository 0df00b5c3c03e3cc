"""spotter top: the last moments of a recording, as a block, as JSON, and redrawn in place on a terminal."""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from recordings import make, recording, run, tool  # noqa: F401


@pytest.fixture
def live(spotter, tmp_path):
    """A recording that grows, for a minute at most."""
    path = tmp_path / 'run.spot'
    p = subprocess.Popen([tool(spotter), '--live', '--ticks', '600', '--interval-ms', '100', path])
    try:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            out = run(spotter, 'top', str(path), '--once', '--json')
            # Rates need two samples.
            if out.returncode == 0 and json.loads(out.stdout)['cpu']['cores_used'] is not None:
                break
            time.sleep(0.05)
        yield path
    finally:
        p.kill()
        p.wait()


def test_of_a_run_that_ended(spotter, recording):
    out = run(spotter, 'top', recording)
    assert out.returncode == 0 and out.stderr == ''
    assert '\033' not in out.stdout
    for words in ('python3 train.py   exit 0', '1,200   10/s   p50 80 ms   input wait 25 %',
                  '1.1 of 4 cores', 'no GPU found', 'pt_data_worker'):
        assert words in out.stdout
    assert out.stdout.count('PROCESSES') == 1


def test_as_json(spotter, recording):
    view = json.loads(run(spotter, 'top', recording, '--json').stdout)
    assert view['run']['live'] is False and view['run']['state'] == 'exit 0'
    assert view['run']['elapsed_s'] == 119
    steps = view['steps']
    assert (steps['count'], steps['per_s'], steps['p50_ms']) == (1200, pytest.approx(10), 80)
    assert steps['input_wait_share'] == pytest.approx(0.25)
    assert steps['samples_per_s'] == pytest.approx(640)
    assert view['host']['cores_used'] == pytest.approx(1.5) and view['host']['cores'] == 4
    assert view['cpu']['cores_used'] == pytest.approx(1.1) and view['cpu']['cores_allowed'] == 4
    assert view['memory']['rss_bytes'] == 219_000_000 and view['memory']['pss_bytes'] is None
    assert view['io']['read_bytes_per_s'] == pytest.approx(3e6)
    assert view['io']['disk_read_bytes_per_s'] is None, 'was not recorded, so it is not zero'
    assert view['gpus'] == [] and view['gpu_reason'] == 'no GPU found'
    assert [(p['pid'], p['cores'], p['rss_bytes'], p['threads']) for p in view['processes']] == [
        (4001, 0.5, 50_000_000, 8), (4002, 0.25, 40_000_000, 1)], 'the one that ended is not there'


@pytest.mark.parametrize('key, pids', [('cpu', [4001, 4002, 4003]), ('rss', [4001, 4002, 4003]),
                                       ('io', [4001, 4002, 4003])])
def test_sorted(spotter, live, key, pids):
    view = json.loads(run(spotter, 'top', str(live), '--once', '--json', '--sort', key).stdout)
    assert [p['pid'] for p in view['processes']] == pids


def test_thousands_of_processes(spotter, tmp_path):
    path = make(spotter, tmp_path / 'run.spot', '--processes', '5000', '--ticks', '4')
    out = run(spotter, 'top', path)
    assert '4,979 more' in out.stdout
    assert len(json.loads(run(spotter, 'top', path, '--json').stdout)['processes']) == 4999


def test_one_tick_has_no_rates(spotter, tmp_path):
    path = tmp_path / 'run.spot'
    p = subprocess.Popen([tool(spotter), '--live', '--ticks', '2', '--interval-ms', '30000', path])
    try:
        view = None
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not (view and view['processes']):
            out = run(spotter, 'top', str(path), '--once', '--json')
            view = json.loads(out.stdout) if out.returncode == 0 else None
        assert view['cpu']['cores_used'] is None and view['processes'][0]['cores'] is None
        assert view['processes'][0]['rss_bytes'] == 50_000_000
    finally:
        p.kill()
        p.wait()


def test_the_newest_live_recording_of_the_folder(spotter, live):
    make(spotter, live.parent / 'finished.spot')
    (live.parent / 'no.spot').write_text('no recording')
    view = json.loads(run(spotter, 'top', '--once', '--json', cwd=live.parent).stdout)
    assert view['run']['recording'] == 'run.spot' and view['run']['live'] is True


def test_without_a_run(spotter, tmp_path):
    out = run(spotter, 'top', cwd=tmp_path)
    assert out.returncode == 1
    assert "Start one with 'spotter run -- COMMAND'" in out.stderr


def test_a_block_per_interval_without_a_terminal(spotter, live):
    p = subprocess.Popen([spotter, 'top', '--interval', '50ms', live], stdout=subprocess.PIPE, text=True)
    heads = 0
    for line in p.stdout:
        heads += line.startswith('spotter')
        if heads == 3:
            break
    p.stdout.close()
    assert p.wait(timeout=30) == 0, 'a reader that left is no failure'


def test_json_per_interval(spotter, live):
    p = subprocess.Popen([spotter, 'top', '--json', '--interval', '50ms', live], stdout=subprocess.PIPE,
                         text=True)
    time.sleep(0.5)
    p.send_signal(signal.SIGINT)
    text, decoder, views = p.communicate(timeout=30)[0], json.JSONDecoder(), []
    while text.strip():
        view, end = decoder.raw_decode(text.lstrip())
        views.append(view)
        text = text.lstrip()[end:]
    assert p.returncode == 0
    assert len(views) >= 2
    assert [v['steps']['count'] for v in views] == sorted(v['steps']['count'] for v in views)


@pytest.mark.parametrize('options, words', [
    (['--sort', 'name'], "--sort is cpu, rss or io, not 'name'"), (['--interval', '1ms'], 'at least 10 ms'),
    (['a', 'b'], 'watches one recording'),
])
def test_bad_options(spotter, options, words):
    out = run(spotter, 'top', *options)
    assert out.returncode == 2 and words in out.stderr


class Terminal:
    """spotter on a terminal of a given size."""

    def __init__(self, spotter, *arguments, rows=30, columns=100):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update(TERM='xterm', LC_ALL='C.UTF-8')
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
            os.execv(spotter, [spotter, *arguments])
        self.output = b''

    def read_until(self, done, seconds=30):
        deadline = time.monotonic() + seconds
        while not done(self.output) and time.monotonic() < deadline:
            if not select.select([self.fd], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b''
            if not data:
                break
            self.output += data
        return done(self.output)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def flags(self):
        return termios.tcgetattr(self.fd)[3] & (termios.ICANON | termios.ECHO)

    def end(self):
        self.read_until(lambda out: False, 5)
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)

    def frames(self):
        return self.output.split(b'\033[H')[1:]


@pytest.mark.parametrize('leave', [b'q', b'\x03'])
def test_on_a_terminal(spotter, live, leave):
    t = Terminal(spotter, 'top', '--interval', '50ms', str(live))
    before = t.flags()
    assert t.read_until(lambda out: out.count(b'\033[H') > 3)
    assert before and not t.flags(), 'keys come at once and are not shown'
    os.write(t.fd, leave)
    assert t.end() == 0
    assert t.output.startswith(b'\033[?25l') and t.output.endswith(b'\033[?25h'), 'the cursor is back'
    frame = t.frames()[2].decode()
    assert 'python3 train.py' in frame and 'pt_data_worker' in frame
    assert frame.count('\033[K\r\n') == frame.count('\n'), 'what a longer line left is cleared'


def test_it_fits_a_small_terminal_and_follows_its_size(spotter, live):
    t = Terminal(spotter, 'top', '--interval', '50ms', str(live), rows=8, columns=60)
    assert t.read_until(lambda out: out.count(b'\033[H') > 3)
    assert t.frames()[2].count(b'\n') <= 8
    t.resize(40, 120)
    assert t.read_until(lambda out: b'pt_data_worker' in out)
    os.write(t.fd, b'q')
    assert t.end() == 0


def test_it_ends_with_the_run_and_the_view_stays(spotter, tmp_path):
    path = tmp_path / 'run.spot'
    p = subprocess.Popen([tool(spotter), '--live', '--ticks', '20', '--interval-ms', '50', path])
    while run(spotter, 'info', str(path)).returncode:
        time.sleep(0.02)
    t = Terminal(spotter, 'top', '--interval', '50ms', str(path))
    status = t.end()
    p.wait()
    assert status == 0
    assert b'exit 0' in t.frames()[-1]
