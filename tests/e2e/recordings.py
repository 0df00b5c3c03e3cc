"""Recordings whose content is known, made by tests/tools/make_recording.c, and what is true of them."""
import subprocess
from pathlib import Path

import pytest

SERIES = 30  # of the default recording: 4 of the host, 8 of its CPUs, 1 sensor, 8 of the job, 9 of processes
TICKS = 120
SAMPLES = 3410  # 120 * 30, less 10 that could not be read and 3 * 60 of the process that ended
STEPS = 1200
T0 = 1_000_000_000_000
SECOND = 1_000_000_000


def tool(spotter):
    path = Path(spotter).parent / 'tests' / 'tools' / 'make_recording'
    if not path.exists():
        pytest.skip('make_recording is not beside the program: it comes with the build directory')
    return str(path)


def make(spotter, path, *options):
    subprocess.run([tool(spotter), *options, path], check=True, timeout=60)
    return str(path)


@pytest.fixture(scope='session')
def recording(spotter, tmp_path_factory):
    """The default recording; not to be changed."""
    return make(spotter, tmp_path_factory.mktemp('recording') / 'run.spot')


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                          stdin=subprocess.DEVNULL, **options)
