"""Bad input and bad luck: whatever happens to spotter, the job goes on and its result is the same."""
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from test_run import report_of, run, wait_for


def shared_directories():
    """Those whose recorder is dead; a living one keeps its own."""
    names = [p for p in os.listdir('/dev/shm') if p.startswith(f'spotter-{os.getuid()}-')]
    return {p for p in names if not os.path.exists('/proc/' + p.split('-')[2])}


@pytest.fixture(autouse=True)
def no_directory_stays():
    before = shared_directories()
    yield
    # What a killed recorder leaves goes with the next run; here every one that was started cleaned up.
    assert shared_directories() <= before


def test_command_not_found(spotter, tmp_path):
    done = run(spotter, tmp_path, '--', 'no-such-command-here')
    assert done.returncode == 127
    assert b'no-such-command-here: command not found' in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_command_not_executable(spotter, tmp_path):
    (tmp_path / 'script').write_text('echo hi\n')
    done = run(spotter, tmp_path, '--', './script')
    assert done.returncode == 126
    assert b'chmod +x' in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ['script']


def test_a_failed_start_keeps_the_old_recording(spotter, tmp_path):
    run(spotter, tmp_path, '-q', '--', 'sh', '-c', 'exit 3')
    assert run(spotter, tmp_path, '--', 'no-such-command-here').returncode == 127
    assert [p.name for p in tmp_path.iterdir()] == ['run.spot']


def test_recording_path_not_writable(spotter, tmp_path):
    done = run(spotter, tmp_path, '-o', str(tmp_path / 'no' / 'such' / 'x.spot'), '--', 'sh', '-c',
               'echo out; exit 4')
    assert done.returncode == 4
    assert done.stdout == b'out\n'
    said = done.stderr.decode()
    assert said.count('the job goes on') == 1
    assert 'x.spot' in said


def test_recording_path_is_no_recording(spotter, tmp_path):
    (tmp_path / 'notes.txt').write_text('my only copy\n')
    done = run(spotter, tmp_path, '-o', 'notes.txt', '--', 'sh', '-c', 'exit 4')
    assert done.returncode == 4
    assert (tmp_path / 'notes.txt').read_text() == 'my only copy\n'
    assert b'the job goes on' in done.stderr


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 300 kB."""
    at = tmp_path / 'small'
    at.mkdir()
    if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=300k', 'tmpfs', at], check=False,
                      capture_output=True).returncode:
        pytest.skip('a small file system cannot be mounted here (needs root)')
    yield at
    subprocess.run(['umount', '-l', at], check=True)


def test_disk_full_in_the_middle(spotter, tmp_path, small_disk):
    done = run(spotter, tmp_path, '-o', str(small_disk / 'x.spot'), '-i', '1ms', '--', 'sh', '-c',
               f'sleep 0.5; dd if=/dev/zero of={small_disk}/fill bs=1k 2>/dev/null; sleep 1.5; echo out; exit 5')
    assert done.returncode == 5
    assert done.stdout == b'out\n'
    said = done.stderr.decode()
    assert said.count('the job goes on') == 1
    assert re.search('space|full', said)
    shown = subprocess.run([spotter, 'report', '--json', small_disk / 'x.spot'], capture_output=True,
                           check=False)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)['run']['command'].startswith('sh -c')


def test_disk_full_and_then_room_again(spotter, tmp_path, small_disk):
    done = run(spotter, tmp_path, '-o', str(small_disk / 'x.spot'), '-i', '5ms', '--', 'sh', '-c',
               f'sleep 0.3; dd if=/dev/zero of={small_disk}/fill bs=1k 2>/dev/null; sleep 1; '
               f'rm {small_disk}/fill; sleep 1.5; exit 0')
    assert done.returncode == 0
    assert report_of(spotter, small_disk / 'x.spot')['run']['exit_code'] == 0


def sample_span_s(spotter, path):
    """Seconds from the first to the last sample, and how many there are, of the job's CPU time."""
    out = subprocess.run([spotter, 'export', '--to', 'jsonl', '--metric', 'cpu.user', '--entity', 'job', path],
                         capture_output=True, check=True).stdout
    times = [json.loads(line)['t_ns'] for line in out.splitlines()
             if json.loads(line).get('type') == 'sample']
    return (max(times) - min(times)) / 1e9, len(times)


@pytest.mark.parametrize('victims', ['spotter', 'job', 'both'])
def test_kill_9(spotter, tmp_path, victims):
    job = subprocess.Popen([spotter, 'run', '-q', '-i', '50ms', '--', 'sh', '-c',
                            'echo $$ >pid; for i in 1 2 3 4 5 6 7 8; do sleep 0.5; done; echo done >result'],
                           cwd=tmp_path, stderr=subprocess.PIPE)
    child = int(wait_for(lambda: (tmp_path / 'pid').exists() and (tmp_path / 'pid').read_text().strip()))
    time.sleep(2.5)
    if victims != 'job':
        job.kill()
    if victims != 'spotter':
        os.kill(child, signal.SIGKILL)
    code = job.wait(10)
    assert code == -signal.SIGKILL
    job.stderr.close()
    span, count = sample_span_s(spotter, tmp_path / 'run.spot')
    assert span > 1.4 and count > 20, 'at most one second is lost'
    said = report_of(spotter, tmp_path / 'run.spot')
    assert said['run']['command'].startswith('sh -c')
    if victims == 'spotter':
        wait_for((tmp_path / 'result').exists)
        assert (tmp_path / 'result').read_text() == 'done\n'
    # The next run removes what the killed one left in shared memory.
    subprocess.run([spotter, 'run', '-q', '-o', 'next.spot', '--', 'true'], cwd=tmp_path, check=True)


def test_the_recording_is_readable_while_it_grows(spotter, tmp_path):
    job = subprocess.Popen([spotter, 'run', '-q', '-i', '20ms', '--', 'sleep', '2'], cwd=tmp_path)
    wait_for((tmp_path / 'run.spot').exists)
    seen = []
    while job.poll() is None:
        time.sleep(0.4)
        done = subprocess.run([spotter, 'report', '--json', 'run.spot'], cwd=tmp_path, capture_output=True,
                              check=False)
        if job.poll() is None:
            assert done.returncode == 0, done.stderr
            seen.append(json.loads(done.stdout)['run']['wall_s'] or 0)
    assert seen == sorted(seen) and seen[-1] > seen[0]
    assert job.wait() == 0


def test_a_crash_of_the_recorder_passes_the_status_on(spotter, tmp_path):
    job = subprocess.Popen([spotter, 'run', '--', 'sh', '-c', 'echo $$ >pid; sleep 1; exit 6'], cwd=tmp_path,
                           stderr=subprocess.PIPE)
    wait_for(lambda: (tmp_path / 'pid').exists())
    time.sleep(0.3)
    os.kill(job.pid, signal.SIGSEGV)
    _, said = job.communicate(timeout=10)
    assert job.returncode == 6
    assert b'the job goes on' in said
    subprocess.run([spotter, 'run', '-q', '-o', 'next.spot', '--', 'true'], cwd=tmp_path, check=True)


def make_file(tmp_path, spotter):
    run(spotter, tmp_path, '-q', '-i', '10ms', '-o', 'good.spot', '--', 'sh', '-c', 'sleep 0.5')
    return tmp_path / 'good.spot'


@pytest.mark.parametrize('content', [b'', b'hello\n', b'SQLite format 3\0', os.urandom(5000)])
def test_a_file_that_is_no_recording(spotter, tmp_path, content):
    (tmp_path / 'x.spot').write_bytes(content)
    for command in (['report'], ['export', '--to', 'csv'], ['info'], ['top', '--once']):
        done = subprocess.run([spotter, *command, 'x.spot'], cwd=tmp_path, capture_output=True, check=False,
                              timeout=20)
        assert done.returncode not in (0, -signal.SIGSEGV, -signal.SIGABRT), command
        assert b'x.spot' in done.stderr
        assert done.stdout == b''


def test_truncated_recordings(spotter, tmp_path):
    good = make_file(tmp_path, spotter).read_bytes()
    for size in range(0, len(good), max(1, len(good) // 25)):
        (tmp_path / 'cut.spot').write_bytes(good[:size])
        done = subprocess.run([spotter, 'report', 'cut.spot'], cwd=tmp_path, capture_output=True, check=False,
                              timeout=20)
        assert done.returncode in (0, 1), (size, done.returncode, done.stderr)
        assert done.returncode == 0 or b'cut.spot' in done.stderr


def test_the_clock_set_back(spotter, tmp_path):
    compiler = shutil.which('cc')
    if not compiler:
        pytest.skip('no C compiler')
    (tmp_path / 'back.c').write_text('''
#define _GNU_SOURCE
#include <time.h>
#include <sys/syscall.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *ts)
{
	static int calls;
	long rc = syscall(SYS_clock_gettime, id, ts);
	if (id == CLOCK_REALTIME && ++calls > 1)
		ts->tv_sec -= 3600;
	return (int)rc;
}
''')
    subprocess.run([compiler, '-shared', '-fPIC', '-o', tmp_path / 'back.so', tmp_path / 'back.c'], check=True)
    done = run(spotter, tmp_path, '-q', '-i', '50ms', '--', 'sleep', '1',
               env=dict(os.environ, LD_PRELOAD=str(tmp_path / 'back.so')))
    assert done.returncode == 0
    assert 0.9 < report_of(spotter, tmp_path / 'run.spot')['run']['wall_s'] < 3
    span, count = sample_span_s(spotter, tmp_path / 'run.spot')
    assert 0.8 < span < 3 and count > 15


def test_ticks_do_not_drift(spotter, tmp_path):
    run(spotter, tmp_path, '-q', '-i', '10ms', '--', 'sleep', '2')
    out = subprocess.run([spotter, 'export', '--to', 'jsonl', '--metric', 'cpu.user', '--entity', 'job',
                          'run.spot'], cwd=tmp_path, capture_output=True, check=True).stdout
    times = [json.loads(line)['t_ns'] for line in out.splitlines()
             if json.loads(line).get('type') == 'sample'][1:-1]
    with sqlite3.connect(f'file:{tmp_path}/run.spot?mode=ro', uri=True) as db:
        start = int(db.execute("select value from run where key = 'start_mono_ns'").fetchone()[0])
    # Each tick is late by its own delay, never by the sum of those before: some at the end are still in time.
    late = [(t - start) % 10_000_000 for t in times]
    assert min(late[:50]) < 2_000_000 and min(late[-50:]) < 2_000_000
    assert len(times) > 100


def test_a_job_with_a_hostile_name(spotter, tmp_path):
    script = ('import ctypes, time\n'
              'ctypes.CDLL(None).prctl(15, b") R 1 (", 0, 0, 0)\n'
              'end = time.process_time() + 0.5\n'
              'while time.process_time() < end: pass\n')
    for reader in ('proc', 'auto'):
        run(spotter, tmp_path, '-q', '-i', '50ms', '--task-reader', reader, '--', sys.executable, '-c', script)
        said = report_of(spotter, tmp_path / 'run.spot')
        assert 0.45 < said['cpu']['user_s'] + said['cpu']['system_s'] < 1.5


def test_a_job_of_another_user(spotter, tmp_path):
    if os.getuid():
        pytest.skip('needs root to start as somebody else')
    tmp_path.chmod(0o777)
    for parent in list(tmp_path.parents)[:3]:
        parent.chmod(parent.stat().st_mode | 0o055)
    mine = tmp_path / 'spotter'
    shutil.copy(spotter, mine)
    mine.chmod(0o755)
    done = subprocess.run([mine, 'run', '-i', '50ms', '-o', str(tmp_path / 'n.spot'), '--', 'sh', '-c',
                           'sleep 0.5; exit 3'], capture_output=True, check=False, timeout=20, user=65534,
                          group=65534, extra_groups=[], env={'PATH': os.environ['PATH'], 'HOME': '/'})
    assert done.returncode == 3, done.stderr
    assert report_of(spotter, tmp_path / 'n.spot')['run']['exit_code'] == 3
