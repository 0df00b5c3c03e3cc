"""A job in a control group of the kernel that runs here, with limits of known size: what spotter says they are,
and what it measures. Needs root and a writable hierarchy, version 1 or 2; skips with the reason otherwise.
"""
import csv
import io
import os
import subprocess
from pathlib import Path

import pytest

from recordings import run

NAME = f'spotter-test-{os.getpid()}'
QUOTA_US, PERIOD_US = 20_000, 100_000
LIMIT = 512 << 20

# Half a second of work for one core, then 64 MB that stay.
LOAD = 'import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass\n' \
       'b = bytearray(b"x" * (64 << 20))\ntime.sleep(0.5)\n'


def mounts():
    """Controllers that can be had, each with the folder of its hierarchy and its version."""
    v1, v2 = {}, {}
    for line in Path('/proc/self/mountinfo').read_text(encoding='utf-8').splitlines():
        left, right = line.split(' - ')
        kind, _, options = right.split(' ')[:3]
        point = Path(left.split(' ')[4])
        if kind == 'cgroup':
            for name in set(options.split(',')) & {'cpu', 'cpuacct', 'memory'}:
                v1.setdefault(name, (point, 1))
        elif kind == 'cgroup2' and (point / 'cgroup.controllers').exists():
            for name in (point / 'cgroup.controllers').read_text(encoding='ascii').split():
                v2.setdefault(name, (point, 2))
    return {**v2, **v1}


def throttled_ns(folders):
    """What the kernel itself says at the end."""
    for folder in folders:
        if (folder / 'cpu.stat').exists():
            stat = dict(line.split() for line in (folder / 'cpu.stat').read_text(encoding='ascii').splitlines())
            if 'throttled_time' in stat:
                return int(stat['throttled_time'])
            if 'throttled_usec' in stat:
                return int(stat['throttled_usec']) * 1000
    return None


def write(path, value):
    path.write_text(str(value), encoding='ascii')


def enable(point, wanted):
    """Hand version 2 controllers down to the children of the top; those that were not handed down before."""
    control = point / 'cgroup.subtree_control'
    new = [name for name in wanted if name not in control.read_text(encoding='ascii').split()]
    for name in new:
        write(control, f'+{name}')
    return new


def set_limits(found):
    for controller, (point, version) in found.items():
        folder = point / NAME
        if controller == 'cpu' and version == 1:
            write(folder / 'cpu.cfs_period_us', PERIOD_US)
            write(folder / 'cpu.cfs_quota_us', QUOTA_US)
        elif controller == 'cpu':
            write(folder / 'cpu.max', f'{QUOTA_US} {PERIOD_US}')
        elif controller == 'memory':
            write(folder / ('memory.limit_in_bytes' if version == 1 else 'memory.max'), LIMIT)


@pytest.fixture
def limited():
    """Folders of a new cgroup with a CPU quota and a memory limit, one per hierarchy."""
    found = mounts()
    if os.geteuid() or not {'cpu', 'memory'} <= set(found):
        pytest.skip('needs root and the controllers cpu and memory')
    made, enabled, why = [], [], None
    try:
        for point, version in sorted(set(found.values())):
            (point / NAME).mkdir()
            made.append(point / NAME)
            if version == 2:
                v2 = [name for name in ('cpu', 'memory') if found[name] == (point, 2)]
                enabled += [(point, name) for name in enable(point, v2)]
        set_limits(found)
    except OSError as e:
        why = e
    if why is None:
        yield made
    for folder in made:
        folder.rmdir()
    for point, name in enabled:
        write(point / 'cgroup.subtree_control', f'-{name}')
    if why is not None:
        pytest.skip(f'cgroups cannot be made here: {why}')


def test_limits_and_usage_of_a_real_cgroup(spotter, tmp_path, limited):
    recording = str(tmp_path / 'run.spot')
    enter = ''.join(f'echo $$ > {folder}/cgroup.procs && ' for folder in limited)
    script = f'{enter}exec {spotter} run --interval 100ms -o {recording} -- python3 -c "$0"'
    out = subprocess.run(['sh', '-c', script, LOAD], capture_output=True, text=True, timeout=60, check=False)
    assert out.returncode == 0, out.stderr
    seen = {}
    for row in csv.DictReader(io.StringIO(run(spotter, 'export', recording).stdout)):
        seen.setdefault((row['entity_kind'], row['metric']), []).append(float(row['value']))
    assert set(seen['job', 'cpu.allowed']) == {QUOTA_US / PERIOD_US}
    assert set(seen['job', 'memory.limit']) == {LIMIT}
    assert set(seen['cgroup', 'memory.limit']) == {LIMIT}
    assert (64 << 20) < max(seen['cgroup', 'memory.used']) < LIMIT
    used = seen['cgroup', 'cpu.user'][-1] + seen['cgroup', 'cpu.system'][-1]
    assert used > 0.4e9  # the work, less what came before the first tick and after the last
    throttled, kernel = seen['cgroup', 'cpu.throttled'], throttled_ns(limited)
    assert throttled == sorted(throttled)
    assert 0 < throttled[-1] <= kernel and throttled[-1] > kernel / 2
    assert seen['cgroup', 'memory.oom_kills'][-1] == 0
