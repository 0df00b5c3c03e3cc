"""From the job's own marks to the recording: the whole way, with the program under test."""
import json
import os
import shutil
import subprocess

import pytest

TRAIN = '''
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
data = TensorDataset(torch.randn(100, 4), torch.randn(100, 1))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=32):
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
'''

MARKS = r'''
#include <spotter/mark.h>
#include <sys/wait.h>
static void *work(void *arg)
{
	spotter_range_push("side");
	spotter_range_pop();
	return arg;
}
int main(void)
{
	pthread_t thread;
	spotter_epoch(0);
	for (int i = 0; i < 500; i++) {
		spotter_range_push("forward");
		spotter_range_pop();
		spotter_step(8);
	}
	spotter_epoch_end();
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	return 0;
}
'''


def run(spotter, folder, *command, options=()):
    recording = folder / 'r.spot'
    done = subprocess.run([spotter, 'run', '-q', '-o', str(recording), *options, '--', *command], cwd=folder,
                          check=False, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, '')
    return recording


def contents(spotter, recording):
    """All lines of the recording, by type."""
    out = subprocess.run([spotter, 'export', '--to', 'jsonl', str(recording)], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    rows = {}
    for line in out.splitlines():
        row = json.loads(line)
        rows.setdefault(row['type'], []).append(row)
    return rows


def events(rows, track):
    return [e for e in rows['event'] if e['track'] == track]


def owner(rows, event):
    (entity,) = [e for e in rows['entity'] if e['id'] == event['entity']]
    return entity


def report(spotter, recording):
    return json.loads(subprocess.run([spotter, 'report', str(recording), '--json'], check=True, text=True,
                                     stdout=subprocess.PIPE).stdout)


def test_steps_of_pytorch_are_exact(spotter, python, tmp_path):
    recording = run(spotter, tmp_path, 'sh', '-c', '"$0" "$@"', python, '-c', TRAIN)
    rows = contents(spotter, recording)
    steps = events(rows, 'step')
    assert [s['args']['step'] for s in steps] == list(range(12))
    assert [s['args']['batch'] for s in steps] == [32, 32, 32, 4] * 3
    assert owner(rows, steps[0])['kind'] == 'process'
    assert len(events(rows, 'epoch')) == 3
    facts = rows['run'][0]
    assert facts['steps_source'] == 'torch hook' and facts['self.lost_records'] == 0
    assert facts['fact.optimizer'] == 'SGD'
    assert report(spotter, recording)['steps']['count'] == 12


def test_the_hook_can_be_left_out(spotter, python, tmp_path):
    rows = contents(spotter, run(spotter, tmp_path, python, '-c', TRAIN, options=['--no-hook']))
    assert not [e for e in rows.get('event', []) if e['track'] == 'step']


def test_a_job_in_a_pid_namespace_of_its_own(spotter, python, tmp_path):
    own = ['unshare', '--pid', '--fork', '--mount-proc']
    if subprocess.run([*own, 'true'], check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip('a pid namespace cannot be made here (not root)')
    recording = run(spotter, tmp_path, *own, python, '-c', TRAIN + 'import time; time.sleep(1.5)')
    rows = contents(spotter, recording)
    steps = events(rows, 'step')
    assert len(steps) == 12
    process = owner(rows, steps[0])
    assert process['kind'] == 'process' and process['key'] > 2  # as seen from outside
    assert not [e for e in rows['entity'] if e['kind'] == 'process' and e['key'] == 1]


def test_marks_of_a_c_program(spotter, root, tmp_path):
    compiler = shutil.which(os.environ.get('CC', 'cc').split()[0])
    if not compiler:
        pytest.skip('no C compiler')
    (tmp_path / 'marks.c').write_text(MARKS)
    subprocess.run([compiler, '-Wall', '-Wextra', '-Werror', '-O2', f'-I{root}/include', 'marks.c', '-o',
                    'marks', '-pthread'], cwd=tmp_path, check=True)
    subprocess.run([tmp_path / 'marks'], check=True)
    rows = contents(spotter, run(spotter, tmp_path, './marks'))
    assert [s['args']['step'] for s in events(rows, 'step')] == list(range(500))
    ranges = events(rows, 'range')
    assert [r['args']['name'] for r in ranges].count('forward') == 500
    (side,) = [r for r in ranges if r['args']['name'] == 'side']
    assert owner(rows, side)['kind'] == 'thread'
    assert rows['run'][0]['steps_source'] == 'marks'
    assert len(events(rows, 'epoch')) == 1


@pytest.mark.parametrize('compiler', ['gcc', 'clang', 'g++', 'clang++'])
@pytest.mark.parametrize('options', ['-O2', '-O0 -g', '-O2 -fPIC -shared', '-std=gnu99', '-std=c++11',
                                     '-fsanitize=address,undefined'])
def test_marks_compile_without_a_warning(root, tmp_path, compiler, options):
    if not shutil.which(compiler):
        pytest.skip(f'no {compiler}')
    plus = compiler.endswith('+')
    if ('gnu99' in options and plus) or ('c++' in options and not plus):
        pytest.skip('the other language')
    for name in ('one', 'two'):
        (tmp_path / f'{name}.c').write_text(MARKS if name == 'one' else
                                            '#include <spotter/mark.h>\nvoid two(void);\n'
                                            'void two(void) { spotter_mark("two", 2); }\n')
    subprocess.run([compiler, *(['-x', 'c++'] if plus else []), *options.split(), '-Wall', '-Wextra',
                    '-Wshadow', '-pedantic', '-Werror', f'-I{root}/include', 'one.c', 'two.c', '-o', 'out',
                    '-pthread'], cwd=tmp_path, check=True)
    if 'shared' not in options:
        subprocess.run([tmp_path / 'out'], check=True)
