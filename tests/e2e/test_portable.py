"""The portable program: one file that runs where nothing is but glibc.

Looks at $SPOTTER_PORTABLE or build/portable/spotter; skipped where `make portable` has not built it.
"""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GLIBC = re.compile(r'(libc|libm|libdl|libpthread|librt)\.so\.\d+|ld-linux[\w-]*\.so\.\d+')
OLDEST = (2, 28)  # what doc/dependencies.md promises


@pytest.fixture(scope='module')
def portable():
    path = Path(os.environ.get('SPOTTER_PORTABLE', ROOT / 'build/portable/spotter')).resolve()
    if not path.exists():
        pytest.skip('build/portable/spotter is not there (make portable)')
    return path


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True,
                          stdin=subprocess.DEVNULL).stdout


def test_needs_nothing_but_glibc(portable):
    needed = re.findall(r'NEEDED +(\S+)', output('objdump', '-p', portable))
    assert needed and not [n for n in needed if not GLIBC.fullmatch(n)]


def test_an_old_glibc_is_enough(portable):
    versions = re.findall(r'GLIBC_(\d+)\.(\d+)', output('objdump', '-T', portable))
    assert max((int(a), int(b)) for a, b in versions) <= OLDEST


def test_runs_alone_in_an_empty_directory(portable, tmp_path):
    alone = shutil.copy(portable, tmp_path)
    done = subprocess.run([alone, 'run', '-o', 'one.spot', '--', 'sh', '-c', 'exit 3'], cwd=tmp_path,
                          env={'PATH': '/usr/bin:/bin'}, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 3, done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ['one.spot', 'spotter']
    report = subprocess.run([alone, 'report', 'one.spot', '--json'], cwd=tmp_path, capture_output=True,
                            text=True, check=True, stdin=subprocess.DEVNULL)
    assert json.loads(report.stdout)['run']['exit_code'] == 3


def copy_with_libraries(program, root):
    """program and the shared objects it needs, at the same places below root."""
    real = Path(program).resolve()
    for path in [real, *map(Path, re.findall(r'(/\S+) \(0x', output('ldd', real)))]:
        target = root / str(path).lstrip('/')
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def test_runs_where_only_glibc_and_a_shell_are(portable, tmp_path):
    if os.geteuid() != 0:
        pytest.skip('chroot needs root')
    sh = Path('/bin/sh').resolve()
    copy_with_libraries(sh, tmp_path)
    glibc = {p.name for p in tmp_path.rglob('*.so*')}
    copy_with_libraries(portable, tmp_path)
    added = {p.name for p in tmp_path.rglob('*.so*')} - glibc
    assert not [name for name in added if not GLIBC.fullmatch(name)]
    shutil.copy(portable, tmp_path / 'spotter')
    for folder in ('bin', 'tmp', 'proc'):
        (tmp_path / folder).mkdir(exist_ok=True)
    shutil.copy(sh, tmp_path / 'bin/sh')
    done = subprocess.run(['/usr/sbin/chroot', tmp_path, '/spotter', 'run', '-o', '/tmp/one.spot', '--', '/bin/sh',
                           '-c', 'true'], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, env={'PATH': '/bin'})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / 'tmp/one.spot').stat().st_size > 0
