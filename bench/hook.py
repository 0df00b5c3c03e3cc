#!/usr/bin/env python3
"""What the step hook costs a training step: the same empty training with and without it.

    bench/hook.py [--python /usr/bin/python3] [--pairs 10]

The training has a DataLoader over a tensor and an optimizer whose step does nothing, so that the loop takes
some tens of microseconds and the hook's part can be seen. Each run is a fresh interpreter; with and
without alternate. Each run gives percentiles over its steps, the table the median over runs, and
for the difference of means a 95 % interval over the pairs. The ring is emptied between steps, outside the time
taken. "own estimate" is what the hook itself reports as its cost per step.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, '..', 'inject', 'python')
STEPS = 6000

CHILD = r'''
import gc, json, os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    x = torch.zeros(8, 4)
    def __len__(self): return %(steps)d
    def __getitem__(self, i): return 0

class Idle(torch.optim.Optimizer):
    def step(self, closure=None): return None

torch.set_num_threads(1)
batch = [Data.x, Data.x]
loader = DataLoader(Data(), batch_size=1, collate_fn=lambda items: batch)
optimizer = Idle([torch.nn.Parameter(torch.zeros(1))], {})
hook = sys.modules.get('spotter_hook')
now = time.perf_counter_ns
ends = []
ring = None
idle = 0
for i, (x, y) in enumerate(loader):
    optimizer.step()
    if hook and i %% 1000 == 0:
        t = now()
        ring = hook._hook.rings.get()
        ring.head[16] = ring.head[8]
        idle += now() - t
    ends.append(now())
gc.collect()
times = sorted(b - a for a, b in zip(ends[500:], ends[501:]))
def at(q): return times[int(q * (len(times) - 1))]
print(json.dumps({'mean': statistics_mean(times), 'p50': at(.5), 'p90': at(.9), 'p99': at(.99),
                  'torch': torch.__version__,
                  'dropped': ring.head[9] if ring else 0,
                  'own': ring.head[10] / len(ends) if ring else 0}))
'''.replace('statistics_mean(times)', 'sum(times[:len(times) * 99 // 100]) / (len(times) * 99 // 100)')


def run(python, directory):
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE='1')
    env.pop('SPOTTER_DIR', None)
    env.pop('PYTHONPATH', None)
    if directory:
        env.update(SPOTTER_DIR=directory, PYTHONPATH=os.path.join(directory, 'python'))
    out = subprocess.run([python, '-c', CHILD % {'steps': STEPS}], env=env, check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    return json.loads(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--python', default='/usr/bin/python3')
    parser.add_argument('--pairs', type=int, default=10)
    parser.add_argument('--json', action='store_true')
    args = parser.parse_args()
    runs = {'without': [], 'with': []}
    for _ in range(args.pairs):
        directory = tempfile.mkdtemp(prefix='spotter-bench-', dir='/dev/shm')
        try:
            shutil.copytree(SOURCE, os.path.join(directory, 'python'))
            runs['without'].append(run(args.python, None))
            runs['with'].append(run(args.python, directory))
        finally:
            shutil.rmtree(directory)
    differences = [b['mean'] - a['mean'] for a, b in zip(runs['without'], runs['with'])]
    mean = statistics.mean(differences)
    half = 1.96 * statistics.stdev(differences) / len(differences) ** .5 if len(differences) > 1 else 0
    result = {
        'torch': runs['with'][0]['torch'], 'pairs': args.pairs, 'steps': STEPS,
        'cost_us': round(mean / 1000, 2), 'interval_us': round(half / 1000, 2),
        'own_estimate_us': round(statistics.median(r['own'] for r in runs['with']) / 1000, 2),
        'dropped': sum(r['dropped'] for r in runs['with']),
    }
    for kind, rows in runs.items():
        for key in ('mean', 'p50', 'p90', 'p99'):
            result['%s_%s_us' % (kind, key)] = round(statistics.median(r[key] for r in rows) / 1000, 2)
    if args.json:
        print(json.dumps(result))
        return
    print('PyTorch %s, %d pairs of %d steps; us per step' % (result['torch'], args.pairs, STEPS))
    print('%-10s %8s %8s %8s %8s' % ('', 'mean', 'p50', 'p90', 'p99'))
    for kind in runs:
        print('%-10s' % kind, *('%8.2f' % result['%s_%s_us' % (kind, k)]
                                for k in ('mean', 'p50', 'p90', 'p99')))
    print('the hook: %(cost_us).2f +- %(interval_us).2f us per step (95 %%); own estimate '
          '%(own_estimate_us).2f us; %(dropped)d records dropped' % result)


if __name__ == '__main__':
    sys.exit(main())
