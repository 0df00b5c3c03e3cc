"""The workloads by themselves, without spotter: they train, say how long an epoch took, and repeat themselves."""
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

SKIP = 77
SMALL = {
    'light': ['--epochs', '1', '--batches', '6', '--threads', '1'],
    'heavy': ['--epochs', '1', '--batches', '3', '--batch-size', '2', '--image-size', '32', '--images', '40',
              '--workers', '0', '--threads', '1'],
}


def train(python, script, *arguments, status=0):
    out = subprocess.run([python, script, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                         text=True, check=False)
    assert out.returncode == status, out.stderr[-2000:]
    return out


def without_times(text):
    return re.sub(r'\d+\.\d+ s', '', text)


@pytest.fixture(scope='module')
def light(python, root, tmp_path_factory):
    """The script and a folder in which it has drawn its digits."""
    folder = tmp_path_factory.mktemp('digits')
    script = root / 'workloads/light/train.py'
    train(python, script, '--cache', folder, '--epochs', 0)
    return script, folder


def test_light_trains_and_learns(python, light):
    script, folder = light
    out = train(python, script, '--cache', folder, '--epochs', 2, '--batches', 40, '--threads', 1).stdout
    epochs = re.findall(r'^epoch (\d)  (\d+\.\d+) s  test \d+\.\d+ s  accuracy (\d+\.\d+) %$', out, re.MULTILINE)
    assert [number for number, _, _ in epochs] == ['1', '2']
    assert float(epochs[1][2]) > 60
    assert (folder / 'light.pt').stat().st_size > 1_000_000


def test_light_reads_real_files_plain_and_gzipped(python, light, tmp_path):
    script, folder = light
    for number, path in enumerate(sorted(folder.glob('*ubyte'))):
        if number % 2:
            shutil.copy(path, tmp_path)
        else:
            with gzip.open(tmp_path / f'{path.name}.gz', 'wb', compresslevel=1) as f:
                f.write(path.read_bytes())
    drawn = train(python, script, '--cache', folder, *SMALL['light']).stdout
    read = train(python, script, '--data', tmp_path, '--cache', tmp_path / 'new', *SMALL['light']).stdout
    assert without_times(read) == without_times(drawn)
    assert not list((tmp_path / 'new').glob('*ubyte'))


def test_light_says_what_is_missing(python, light, tmp_path):
    script, _ = light
    assert '--data names the folder' in train(python, script, '--data', tmp_path, status=1).stderr


@pytest.mark.parametrize('workload', ['light', 'heavy'])
def test_same_seed_same_numbers(python, root, light, tmp_path, workload):
    script = root / 'workloads' / workload / 'train.py'
    more = ['--cache', light[1]] if workload == 'light' else ['--output', tmp_path / 'heavy.pt']

    def numbers(seed):
        return without_times(train(python, script, *SMALL[workload], *more, '--seed', seed).stdout)

    one = numbers(1)
    assert one == numbers(1)
    assert one != numbers(2)


def test_heavy_keeps_images_in_files(python, root, tmp_path):
    script = root / 'workloads/heavy/train.py'
    arguments = [*SMALL['heavy'], '--output', tmp_path / 'heavy.pt']
    drawn = train(python, script, *arguments).stdout
    first = train(python, script, *arguments, '--data', tmp_path).stdout
    again = train(python, script, *arguments, '--data', tmp_path).stdout
    assert 'drawing 40 images' in first
    assert without_times(again) == without_times(drawn)
    assert (tmp_path / 'train-40.u8').stat().st_size == 40 * 256 * 256 * 3


def test_each_bottleneck_says_what_is_built_in(root):
    """The head of each script names the finding that the table expects of it, and the README lists it."""
    folder = root / 'workloads/bottlenecks'
    readme = (root / 'workloads/README.md').read_text(encoding='utf-8')
    trainings = json.loads((folder / 'corpus.json').read_text(encoding='utf-8'))['trainings']
    helpers = {'common.py', 'limits.py'}
    assert {t['script'] for t in trainings} == {p.name for p in folder.glob('*.py')} - helpers
    for training in trainings:
        head = (folder / training['script']).read_text(encoding='utf-8').split('\nimport')[0]
        assert f"# spotter should say: {training['expect']}" in head
        assert re.search(rf"\| `{training['script']}` \|.*\| `{training['expect']}` \|", readme)


def test_bottlenecks_train(python, root, tmp_path):
    """One of them, for the parts they share; test_bottlenecks.py runs them all."""
    script = root / 'workloads/bottlenecks/healthy.py'
    out = train(python, script, '--seconds', 0.5, '--cache', tmp_path).stdout
    assert re.match(r'epoch 1  \d+\.\d+ s  loss \d', out)
    assert (tmp_path / 'healthy.pt').exists()


def test_bottlenecks_that_lack_something_say_so(python, root, tmp_path):
    folder = root / 'workloads/bottlenecks'
    for script in ('memory_near_limit.py', 'swapping.py'):
        limited = subprocess.run([python, '-c', 'import limits; print(limits.Memory().limit <= 4 << 30)'], cwd=folder,
                                 capture_output=True, text=True, check=True).stdout.strip() == 'True'
        if limited:
            pytest.skip('a memory limit is there already')
        assert 'skipped: no memory limit' in train(python, folder / script, '--cache', tmp_path, status=SKIP).stderr


def test_within_limits_memory_and_cleans_up(root):
    """The command sees the limit and its swap; neither is there afterwards, also if the command was killed."""
    within = root / 'workloads/bottlenecks/within'
    script = 'import limits; m = limits.Memory(); print(m.limit, 0 < m.used() < m.limit, flush=True); ' \
             'print(open("/proc/swaps").read().count("within-"), flush=True); import os; os.kill(os.getpid(), 9)'
    out = subprocess.run([within, '--memory', '300M', '--swap', '16M', '--', sys.executable, '-c', script],
                         cwd=root / 'workloads/bottlenecks', capture_output=True, text=True, check=False)
    if out.returncode == SKIP:
        pytest.skip(out.stderr.strip())
    assert out.returncode == 128 + 9, out.stderr
    assert out.stdout.split() == [str(300 << 20), 'True', '1']
    with open('/proc/swaps', encoding='ascii') as f:
        assert 'within-' not in f.read()


def test_within_passes_the_exit_status_on(root):
    within = root / 'workloads/bottlenecks/within'
    out = subprocess.run([within, '--memory', '300M', '--', 'sh', '-c', 'exit 3'], capture_output=True, text=True,
                         check=False)
    if out.returncode == SKIP:
        pytest.skip(out.stderr.strip())
    assert out.returncode == 3
    missing = subprocess.run([within, '--memory', '300M', '--', 'no-such-command'], capture_output=True, text=True,
                             env={**os.environ, 'LC_ALL': 'C'}, check=False)
    assert missing.returncode == 127
    assert 'command not found' in missing.stderr
