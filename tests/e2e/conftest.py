"""What every end-to-end test may ask for, and what every one must keep.

Fixtures: `spotter`, the path of the program under test ($SPOTTER, else build/spotter); `python`, an interpreter
that can import torch ($SPOTTER_TEST_PYTHON, else what is found), or the test is skipped; `root`, the top of the
source tree.

Kept for all of them: a test ends within five minutes, and nothing that it started outlives it.
"""
import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 300
PR_SET_CHILD_SUBREAPER = 36


def _has_torch(python):
    check = 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'
    try:
        return subprocess.run([python, '-c', check], stdin=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture(scope='session')
def root():
    return ROOT


@pytest.fixture(scope='session')
def spotter():
    program = Path(os.environ.get('SPOTTER', ROOT / 'build' / 'spotter')).resolve()
    if not os.access(program, os.X_OK):
        pytest.fail(f'{program} is not there: run make first', pytrace=False)
    return str(program)


@pytest.fixture(scope='session')
def python():
    named = os.environ.get('SPOTTER_TEST_PYTHON')
    for candidate in [named] if named else ['/usr/bin/python3', 'python3']:
        if _has_torch(candidate):
            return candidate
    pytest.skip(f"{named or 'no python3 here'} cannot import torch (Debian: python3-torch)")


def _children():
    """Pids and states of the children of this process."""
    found = {}
    for task in os.listdir('/proc/self/task'):
        with open(f'/proc/self/task/{task}/children', encoding='ascii') as f:
            pids = f.read().split()
        for pid in pids:
            try:
                with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
                    stat = f.read()
            except OSError:
                continue
            found[int(pid)] = (stat[stat.rindex(')') + 2], stat[stat.index('(') + 1:stat.rindex(')')])
    return found


def _adopt_orphans():
    """Grandchildren whose parent died come to us, so that they can be found and ended."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@pytest.fixture(autouse=True)
def nothing_outlives_a_test(request):
    """What a session-wide fixture started before may stay; everything else must be gone."""
    _adopt_orphans()
    before = set(_children())
    yield
    deadline = time.monotonic() + 2
    while True:
        left = {pid: of for pid, of in _children().items() if pid not in before}
        running = {pid: name for pid, (state, name) in left.items() if state not in 'ZX'}
        if not running or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    for pid in left:
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass
    if running:
        pytest.fail(f'left running: {sorted(running.items())}', pytrace=False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    def too_long(_signal, _frame):
        raise TimeoutError(f'{item.name} took more than {LIMIT_S} s')

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LIMIT_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
