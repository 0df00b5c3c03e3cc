"""The step hook, driven directly: Python with the hook's folder on its path, and no recorder; what it wrote is
read from the rings. The same tests run on every PyTorch that is supported (tests/torch/run).
"""
import os
import shutil
import signal
import subprocess
import textwrap

import pytest

import rings

PRELUDE = '''
import os, sys
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
torch.manual_seed(0)
torch.set_num_threads(1)
data = TensorDataset(torch.randn(100, 4), torch.randn(100, 1))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=.01)
def learn(x, y, step=True):
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    if step:
        optimizer.step()
        optimizer.zero_grad()
'''


class Job:
    """Runs Python code as a job of a recorder would run."""

    def __init__(self, python, root, folder):
        self.python, self.dir = python, folder / 'run'
        self.dir.mkdir(mode=0o700)
        shutil.copytree(root / 'inject' / 'python', self.dir / 'python',
                        ignore=shutil.ignore_patterns('__pycache__'))
        self.cwd = folder / 'cwd'
        self.cwd.mkdir()
        self.env = dict(os.environ, SPOTTER_DIR=str(self.dir), PYTHONPATH=str(self.dir / 'python'))

    def start(self, code, prelude=PRELUDE, options=(), **env):
        script = self.cwd / 'job.py'
        script.write_text(prelude + textwrap.dedent(code))
        return subprocess.Popen([self.python, *options, str(script)], cwd=self.cwd,
                                env={**self.env, **env}, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run(self, code, torch_talks=False, **kwargs):
        """Its output; it must end well and say nothing on standard error (where PyTorch itself does not)."""
        with self.start(code, **kwargs) as process:
            out, err = process.communicate()
        assert (process.returncode, '' if torch_talks else err) == (0, ''), err
        return out

    def rings(self):
        return rings.read_all(self.dir)

    def ring(self):
        (ring,) = self.rings()
        assert not ring.notices and not ring.dropped
        return ring


@pytest.fixture
def job(python, root, tmp_path):
    return Job(python, root, tmp_path)


def check_times(steps):
    for before, after in zip(steps, steps[1:]):
        assert before.t + before.dur <= after.t
    for step in steps:
        assert step.wait is None or 0 <= step.wait <= step.dur


# ------------------------------------------------------------------------------------ plain training

EPOCHS = '''
train = DataLoader(data, batch_size=32, shuffle=True)
test = DataLoader(data, batch_size=50)
for epoch in range(3):
    for x, y in train:
        learn(x, y)
    with torch.no_grad():
        for x, y in test:
            model(x)
print(model.weight.tolist(), torch.rand(1).item())
'''


def test_epochs_steps_and_evaluation(job):
    job.run(EPOCHS)
    ring = job.ring()
    train, test = ring.of('step', 0), ring.of('step', 1)
    assert [s.index for s in train] == list(range(12))
    assert [s.epoch for s in train] == [0] * 4 + [1] * 4 + [2] * 4
    assert [s.batch for s in train] == [32, 32, 32, 4] * 3
    assert [s.index for s in test] == list(range(6)) and [s.batch for s in test] == [50] * 6
    assert all(s.wait > 0 and s.dur > 0 for s in train + test)
    check_times(sorted(train + test, key=lambda s: s.t))
    assert [e.index for e in ring.of('epoch', 0)] == [e.index for e in ring.of('epoch', 1)] == [0, 1, 2]
    assert ring.cost > 0


def test_facts(job):
    job.run(EPOCHS)
    facts = job.ring().facts
    version = job.run('print(torch.__version__, *sys.version_info[:3])').split()
    assert facts['hook'] == 'torch hook'
    assert facts['torch'] == version[0] and facts['python'] == '.'.join(version[1:])
    assert facts['loader.workers'] == '0' and facts['loader.batch_size'] == '32'
    assert facts['eval_loader.batch_size'] == '50' and facts['dataset'] == 'TensorDataset'
    assert facts['optimizer'] == 'SGD' and facts['optimizer.parameters'] == '5'
    assert facts['device'] == 'cpu' and facts['torch.threads'] == '1'


def test_training_is_the_same_to_the_bit(job):
    watched = job.run(EPOCHS)
    assert watched == job.run(EPOCHS, SPOTTER_DIR='') and len(job.rings()) == 1


def test_cuda_is_left_alone(job):
    job.run(EPOCHS + 'assert not torch.cuda.is_initialized()\n')


# ---------------------------------------------------------------------------------- what is a step?


def test_no_loader_no_input_wait(job):
    job.run('for i in range(5): learn(torch.ones(2, 4), torch.ones(2, 1))')
    steps = job.ring().of('step')
    assert len(steps) == 5 and all(s.wait is None and s.batch is None and s.epoch is None for s in steps)
    assert steps[0].dur == 0  # its begin is not known
    assert all(s.dur > 0 for s in steps[1:])


def test_gradient_accumulation(job):
    job.run('''
    for epoch in range(2):
        for i, (x, y) in enumerate(DataLoader(data, batch_size=10)):
            learn(x, y, step=i % 5 == 4)
    ''')
    ring = job.ring()
    assert [s.batch for s in ring.of('step')] == [50] * 4
    assert not ring.of('step', 1) and len(ring.of('epoch', 0)) == 2


def test_what_is_left_of_an_accumulation_is_no_step(job):
    job.run('''
    loader = DataLoader(data, batch_size=10)
    for epoch in range(2):
        for i, (x, y) in enumerate(loader):
            learn(x, y, step=i % 4 == 3)
    ''')
    assert [s.batch for s in job.ring().of('step')] == [40] * 4


def test_one_step_after_the_whole_pass(job):
    job.run('''
    loader = DataLoader(data, batch_size=25)
    for epoch in range(3):
        for x, y in loader:
            learn(x, y, step=False)
        optimizer.step()
    ''')
    ring = job.ring()
    assert [(s.batch, s.phase, s.epoch) for s in ring.of('step')] == [(100, 0, i) for i in range(3)]


@pytest.mark.parametrize('loader', ['DataLoader(data, batch_size=10)', '[(torch.ones(10, 4), 0)] * 10'])
def test_two_optimizers_make_one_step(job, loader):
    job.run(f'''
    other = torch.nn.Linear(4, 1)
    second = torch.optim.Adam(other.parameters())
    for epoch in range(2):
        for x, y in {loader}:
            model(x).mean().backward(); optimizer.step()
            other(x).mean().backward(); second.step()
    ''')
    ring = job.ring()
    assert len(ring.of('step')) == 20
    # The second of the pair is not met where the first one leads from the beginning.
    assert ring.facts['optimizer'] == 'SGD'


def test_a_new_optimizer_takes_over(job):
    job.run('''
    def fit():
        net = torch.nn.Linear(4, 1)
        own = torch.optim.SGD(net.parameters(), lr=.1)
        for x, y in DataLoader(data, batch_size=20):
            net(x).mean().backward()
            own.step()
    for fold in range(3):
        fit()
    ''')
    assert len(job.ring().of('step')) == 15


def test_several_steps_on_one_batch(job):
    job.run('''
    for x, y in DataLoader(data, batch_size=50):
        for inner in range(4):
            learn(x, y)
    ''')
    steps = job.ring().of('step')
    assert [s.batch for s in steps] == [50, None, None, None] * 2
    assert [s.wait > 0 for s in steps] == [True, False, False, False] * 2


@pytest.mark.parametrize('batches', [5, 100])
def test_a_pass_without_an_optimizer_is_evaluation(job, batches):
    job.run(f'''
    loader = DataLoader(data, batch_size=25)
    other = DataLoader(data, batch_size=100 // {batches})
    for epoch in range(2):
        for x, y in loader:
            learn(x, y)
        for x, y in other:
            model(x)
    ''')
    ring = job.ring()
    assert len(ring.of('step', 0)) == 8 and len(ring.of('step', 1)) == 2 * batches
    assert [e.index for e in ring.of('epoch', 1)] == [0, 1]
    check_times(sorted(ring.of('step'), key=lambda s: s.t))


def test_many_batches_before_the_first_step(job):
    """It looks like evaluation until the optimizer steps."""
    job.run('''
    loader = DataLoader(data, batch_size=1)
    for epoch in range(2):
        for i, (x, y) in enumerate(loader):
            learn(x, y, step=i % 80 == 79)
    ''')
    assert len(job.ring().of('step', 0)) == 2


def test_evaluation_in_the_middle_of_an_epoch(job):
    job.run('''
    import time
    test = DataLoader(data, batch_size=50)
    for i, (x, y) in enumerate(DataLoader(data, batch_size=10)):
        learn(x, y)
        if i % 4 == 3:
            with torch.no_grad():
                for j, (u, v) in enumerate(test):
                    time.sleep(.05)
                    if i == 7:
                        break
    ''')
    ring = job.ring()
    train, test = ring.of('step', 0), ring.of('step', 1)
    assert len(train) == 10 and len(test) == 3
    assert min(s.dur for s in test) >= 50e6
    check_times(sorted(train + test, key=lambda s: s.t))
    assert len(ring.of('epoch', 0)) == 1 and len(ring.of('epoch', 1)) == 2


def test_two_loaders_for_one_step(job):
    job.run('''
    a, b = DataLoader(data, batch_size=20), DataLoader(data, batch_size=10)
    for epoch in range(3):
        for (x, y), (u, v) in zip(a, b):
            learn(torch.cat([x, u]), torch.cat([y, v]))
    ''')
    ring = job.ring()
    assert [s.batch for s in ring.of('step', 0)] == [30] * 15
    assert not ring.of('step', 1) and [e.index for e in ring.of('epoch', 0)] == [0, 1, 2]


def test_a_fresh_iterator_for_each_step(job):
    job.run('''
    loader = DataLoader(data, batch_size=20, shuffle=True)
    for i in range(7):
        learn(*next(iter(loader)))
    ''')
    assert [s.batch for s in job.ring().of('step')] == [20] * 7


@pytest.mark.parametrize('batch, size', [
    ('dict(x=items[0], y=1)', 8), ('[dict(x=items[0])]', 8), ('items[0]', 8), ('(3, items[0])', None),
    ('"text"', None), ('Own()', None)])
def test_batch_sizes(job, batch, size):
    job.run(f'''
    class Own: pass
    class Items(Dataset):
        def __len__(self): return 3
        def __getitem__(self, i): return torch.ones(8, 4)
    def collate(items): return {batch}
    for batch in DataLoader(Items(), batch_size=None, collate_fn=lambda item: collate([item])):
        optimizer.step()
    ''')
    assert [s.batch for s in job.ring().of('step')] == [size] * 3


def test_batch_size_of_the_loader_where_batches_do_not_tell(job):
    job.run('''
    for batch in DataLoader(data, batch_size=20, collate_fn=lambda items: 'opaque'):
        optimizer.step()
    ''')
    assert [s.batch for s in job.ring().of('step')] == [20] * 5


def test_fetching_in_another_thread_is_no_wait_of_the_loop(job):
    job.run('''
    import queue, threading
    q = queue.Queue(2)
    def feed():
        for batch in DataLoader(data, batch_size=20):
            q.put(batch)
        q.put(None)
    thread = threading.Thread(target=feed)
    thread.start()
    while (batch := q.get()) is not None:
        learn(*batch)
    thread.join()
    ''')
    steps = [s for ring in job.rings() for s in ring.of('step', 0)]
    assert len(steps) == 5 and all(s.wait is None for s in steps if s.batch)


# --------------------------------------------------------------------------------------- loaders


@pytest.mark.parametrize('options', ['', 'persistent_workers=True', 'multiprocessing_context="spawn"'])
def test_workers_are_no_trainers(job, options):
    job.run(f'''
    if __name__ == '__main__':
        loader = DataLoader(data, batch_size=25, num_workers=2, {options})
        for epoch in range(2):
            for x, y in loader:
                learn(x, y)
    ''')
    ring = job.ring()
    assert [s.batch for s in ring.of('step')] == [25] * 8
    assert [e.index for e in ring.of('epoch')] == [0, 1] and ring.facts['loader.workers'] == '2'
    check_times(ring.of('step'))


def test_iterable_dataset(job):
    job.run('''
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(data)
    for x, y in DataLoader(Stream(), batch_size=30):
        learn(x, y)
    ''')
    ring = job.ring()
    assert [s.batch for s in ring.of('step')] == [30, 30, 30, 10] and ring.facts['dataset'] == 'Stream'


def test_errors_of_the_loader_are_the_jobs(job):
    out = job.run('''
    class Bad(Dataset):
        def __len__(self): return 3
        def __getitem__(self, i): raise KeyError(i)
    try:
        next(iter(DataLoader(Bad())))
    except KeyError as e:
        print(repr(e))
    it = iter(DataLoader(data, batch_size=100))
    next(it)
    for i in range(2):
        try:
            next(it)
        except StopIteration:
            print('end')
    ''')
    assert out == 'KeyError(0)\nend\nend\n'


# ------------------------------------------------------------------------------------- optimizers


def test_any_optimizer_and_scheduler(job):
    job.run('''
    import copy, pickle, warnings
    warnings.simplefilter('error', UserWarning)
    class Mine(torch.optim.SGD):
        def step(self, closure=None):
            """Mine."""
            return super().step(closure)
    class Plain(torch.optim.Optimizer):
        def __init__(self, params): super().__init__(params, {})
        def step(self): return 'stepped'
    w = [torch.nn.Parameter(torch.ones(2))]
    w[0].grad = torch.ones(2)
    plain = Plain(w)
    assert plain.step() == 'stepped' and plain.step() == 'stepped'
    mine = Mine(w, lr=.1)
    schedule = torch.optim.lr_scheduler.StepLR(mine, 1)
    for i in range(3):
        mine.step()
        schedule.step()
    for other in (copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))):
        other.step()
    assert isinstance(mine, torch.optim.SGD) and Mine.step.__doc__ == 'Mine.'
    lbfgs = torch.optim.LBFGS(w)
    def closure():
        lbfgs.zero_grad(); loss = (w[0] ** 2).sum(); loss.backward(); return loss
    lbfgs.step(closure); lbfgs.step(closure)
    ''')
    assert job.ring().facts['optimizer'] == 'Plain'


def test_an_optimizer_made_before_the_hook_is_seen(job):
    job.run('for i in range(3): optimizer.step()', prelude='''
import torch, threading
threading.Thread(target=lambda: None).start()
optimizer = torch.optim.Adam([torch.nn.Parameter(torch.ones(1))])
''')
    assert len(job.ring().of('step')) == 3


def test_gradient_scaler(job):
    job.run('''
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    for x, y in DataLoader(data, batch_size=25):
        scaler.scale(((model(x) - y) ** 2).mean()).backward()
        scaler.step(optimizer)
        scaler.update()
    ''', options=['-W', 'ignore'])
    assert len(job.ring().of('step')) == 4


def test_compiled_models_and_steps(job):
    code = '''
    if not hasattr(torch, 'compile'):
        print('none'); sys.exit()
    graphs = []
    def eager(graph, inputs):
        graphs.append(len(graph.graph.nodes))
        return graph.forward
    fast = torch.compile(model, backend=eager)
    sgd = torch.optim.SGD(model.parameters(), lr=.01)
    for x, y in DataLoader(data, batch_size=10):
        ((fast(x) - y) ** 2).mean().backward()
        sgd.step()
    other = torch.optim.Adam(model.parameters(), lr=.01)
    @torch.compile(backend=eager)
    def step():
        other.step()
    for i in range(5):
        step()
    print(graphs, model.weight.tolist())
    '''
    watched = job.run(code, torch_talks=True)
    if watched == 'none\n':
        pytest.skip('this PyTorch has no torch.compile')
    assert watched == job.run(code, torch_talks=True, SPOTTER_DIR='')
    steps = job.ring().of('step', 0)
    assert [s.batch for s in steps[:10]] == [10] * 10


def test_the_profiler_still_sees_steps(job):
    out = job.run('''
    with torch.autograd.profiler.profile() as p:
        optimizer.step()
    print(any('Optimizer.step#SGD.step' in e.name for e in p.function_events))
    ''', torch_talks=True)
    assert out == 'True\n' and len(job.ring().of('step')) == 1


# ------------------------------------------------------------------------- checkpoints, collector


def test_checkpoints(job):
    job.run('''
    import io, pathlib, pickle
    torch.save(model.state_dict(), 'a.pt')
    torch.save(model.state_dict(), pathlib.Path('b.pt'))
    with open('c.pt', 'wb') as f:
        f.write(b'123')
        torch.save(model.state_dict(), f=f)
    torch.save(model.state_dict(), io.BytesIO())
    assert pickle.loads(pickle.dumps(torch.save)) is torch.save is torch.serialization.save
    class Nested:
        def __reduce__(self):
            torch.save(1, 'd.pt')
            return (Nested, ())
    torch.save(Nested(), 'e.pt')
    try:
        torch.save(1, '/nowhere/f.pt')
    except Exception as e:
        print('refused')
    for name in ('a.pt', 'b.pt', 'e.pt'):
        assert torch.load(name, **({'weights_only': False} if torch.__version__ >= '2' else {})) is not None
    ''')
    ring = job.ring()
    saves = ring.of('checkpoint')
    sizes = [os.path.getsize(job.cwd / n) for n in ('a.pt', 'b.pt', 'c.pt')]
    assert [s.bytes for s in saves[:3]] == [sizes[0], sizes[1], sizes[2] - 3]
    assert len(saves) == 5 and saves[3].bytes > 0 and all(s.dur > 0 for s in saves)


def test_safetensors(job):
    out = job.run('''
    try:
        from safetensors.torch import save_file
    except ImportError:
        print('none'); sys.exit()
    save_file({'w': torch.ones(100)}, 'w.safetensors')
    ''')
    if out == 'none\n':
        pytest.skip('safetensors is not installed')
    (save,) = job.ring().of('checkpoint')
    assert save.bytes == os.path.getsize(job.cwd / 'w.safetensors')


def test_distributed_checkpoints(job):
    out = job.run('''
    try:
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint import save
    except ImportError:
        print('none'); sys.exit()
    save({'w': torch.ones(100)}, checkpoint_id='folder')
    ''', torch_talks=True)
    if out == 'none\n':
        pytest.skip('this PyTorch has no torch.distributed.checkpoint.save')
    assert len(job.ring().of('checkpoint')) == 1


def test_collector_pauses(job):
    job.run('''
    import gc
    junk = [[i] for i in range(200000)]
    gc.disable()
    for i in range(3):
        learn(torch.ones(2, 4), torch.ones(2, 1))
        gc.collect()
    cycle = []; cycle.append(cycle); del cycle
    gc.collect()
    ''')
    pauses = job.ring().of('gc')
    assert [p.generation for p in pauses] == [2] * 4
    assert all(p.dur > 100000 for p in pauses) and pauses[-1].collected >= 1


# --------------------------------------------------------------------------------- ends and forks


def test_killed_at_once(job):
    with job.start('''
        for i in range(10): learn(torch.ones(2, 4), torch.ones(2, 1))
        os.kill(os.getpid(), 9)
        ''') as process:
        assert process.wait() == -signal.SIGKILL
    assert len(job.ring().of('step')) == 10


def test_exit_without_goodbye(job):
    job.run('''
    for x, y in DataLoader(data, batch_size=10): learn(x, y)
    os._exit(0)
    ''')
    assert len(job.ring().of('step')) == 10


def test_a_forked_child_has_its_own_ring(job):
    job.run('''
    for i in range(3): learn(torch.ones(2, 4), torch.ones(2, 1))
    pid = os.fork()
    for i in range(4 if pid else 7): learn(torch.ones(2, 4), torch.ones(2, 1))
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
    ''')
    first, second = sorted(job.rings(), key=lambda r: r.start)
    assert [s.index for s in first.of('step')] == list(range(7))
    assert [s.index for s in second.of('step')] == list(range(7))
    assert first.pid != second.pid and second.facts['torch']


def test_a_child_that_only_forked_has_none(job):
    job.run('''
    import gc
    learn(torch.ones(2, 4), torch.ones(2, 1))
    if not os.fork():
        gc.collect()
        os._exit(0)
    os.wait()
    ''')
    assert len(job.rings()) == 1


def test_ranks(job):
    out = job.run('''
    import torch.distributed as dist
    import torch.multiprocessing as mp
    os.environ['GLOO_SOCKET_IFNAME'] = 'lo'  # a host whose name does not resolve is warned about
    def rank(r, size):
        dist.init_process_group('gloo', init_method='file://' + os.path.abspath('store'), rank=r, world_size=size)
        torch.manual_seed(r)
        for x, y in DataLoader(data, batch_size=25):
            learn(x, y)
        dist.destroy_process_group()
    if __name__ == '__main__':
        if not dist.is_available() or not dist.is_gloo_available() if hasattr(dist, 'is_gloo_available') else not dist.is_available():
            print('none'); sys.exit()
        mp.spawn(rank, (2,), nprocs=2)
    ''')
    if out == 'none\n':
        pytest.skip('this PyTorch cannot run ranks')
    assert sorted(r.facts['rank'] for r in job.rings()) == ['0', '1']
    assert all(r.facts['world_size'] == '2' and len(r.of('step')) == 4 for r in job.rings())


# -------------------------------------------------------------------------------------- bad luck


def test_a_full_ring_drops_and_counts(job):
    job.run('''
    for i in range(5000): optimizer.step()
    ''')
    (ring,) = job.rings()
    assert ring.head == ring.capacity and ring.dropped >= 5000 - ring.capacity
    assert ring.head + ring.dropped > 5000


def test_the_directory_goes_away(job):
    out = job.run('''
    import shutil, threading
    learn(torch.ones(2, 4), torch.ones(2, 1))
    shutil.rmtree(os.environ['SPOTTER_DIR'])
    for i in range(3): learn(torch.ones(2, 4), torch.ones(2, 1))
    thread = threading.Thread(target=learn, args=(torch.ones(2, 4), torch.ones(2, 1)))
    thread.start(); thread.join()
    torch.save(1, 'a.pt')
    print('on')
    ''')
    assert out == 'on\n'


def test_no_room_in_the_directory(job):
    small = job.dir / 'small'
    small.mkdir()
    if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=200k', 'none', str(small)], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        pytest.skip('tmpfs cannot be mounted here (not root)')
    try:
        shutil.copytree(job.dir / 'python', small / 'python')
        out = job.run(EPOCHS, SPOTTER_DIR=str(small), PYTHONPATH=str(small / 'python'))
        assert out and not rings.read_all(small)
    finally:
        subprocess.run(['umount', '-l', str(small)], check=True)


def test_an_error_of_the_hook_takes_it_out(job):
    out = job.run('''
    hook = sys.modules['spotter_hook']._hook
    before = torch.optim.Optimizer._optimizer_step_code
    learn(torch.ones(2, 4), torch.ones(2, 1))
    hook.steps.index = 'broken'
    for x, y in DataLoader(data, batch_size=25): learn(x, y)
    assert torch.optim.Optimizer._optimizer_step_code is not before
    print(torch.utils.data.DataLoader.__iter__.__module__, not hook.patches)
    ''')
    assert out == 'torch.utils.data.dataloader True\n'
    (ring,) = job.rings()
    assert len(ring.notices) == 1 and ring.notices[0].startswith('the step hook stopped: ')


def test_exceptions_of_signal_handlers_are_the_jobs(job):
    """Also those that hit while the hook's own code runs."""
    out = job.run('''
    import signal
    class Alarm(Exception): pass
    def ring(*args): raise Alarm
    signal.signal(signal.SIGALRM, ring)
    caught = 0
    while caught < 300:
        try:
            signal.setitimer(signal.ITIMER_REAL, .0003)
            while True:
                optimizer.step()
        except Alarm:
            caught += 1
    print(caught, bool(sys.modules['spotter_hook']._hook.patches))
    ''')
    assert out == '300 True\n'


def test_threads_that_come_and_go_share_rings(job):
    job.run('''
    import threading
    for i in range(50):
        thread = threading.Thread(target=lambda: torch.save(1, 'a.pt'))
        thread.start(); thread.join()
    ''')
    ring = job.ring()
    assert ring.tid == 0 and len(ring.of('checkpoint')) == 50


# ------------------------------------------------------------------------ the way into the process


def test_silent_without_torch(job):
    job.run('''
    import os, sys
    assert not any(os.environ['SPOTTER_DIR'] in p for p in sys.path), sys.path
    assert 'spotter_hook' not in sys.modules
    ''', prelude='')
    assert not job.rings()


def test_imports_look_as_they_would(job):
    code = '''
    import importlib.machinery, importlib.util, inspect, sys
    spec = importlib.util.find_spec('torch')
    print(type(spec.loader), spec.origin, importlib.util.find_spec('nothing_of_that_name'))
    import torch
    assert 'exec_module' not in vars(torch.__spec__.loader) and torch.__spec__.loader is torch.__loader__
    print(type(torch.__loader__), [p for p in sys.path if p], inspect.getsource(torch.save)[:20])
    print(inspect.signature(torch.save), inspect.signature(torch.utils.data.DataLoader.__iter__))
    '''
    assert job.run(code, prelude='') == job.run(code, prelude='', PYTHONPATH='')


def test_other_customizations_still_run(job):
    for name in ('sitecustomize', 'usercustomize'):
        (job.cwd / f'{name}.py').write_text(f'import sys; print("{name}", __name__, "spotter" in str(sys.path))')
    code = 'import sys, sitecustomize; print(sitecustomize.__file__, sys.path[1:3])'
    there = str(job.cwd)
    plain = job.run(code, prelude='', PYTHONPATH=there)
    assert job.run(code, prelude='', PYTHONPATH=f'{job.dir}/python:{there}') == plain
    assert plain.startswith('sitecustomize sitecustomize False\n')


@pytest.mark.parametrize('directory', ['', '/nonexistent', 'relative', '/etc'])
def test_without_a_recorder_nothing(job, directory):
    job.run('''
    import sys, torch
    assert 'spotter_hook' not in sys.modules
    assert torch.save.__code__.co_filename == torch.serialization.load.__code__.co_filename
    assert not any('spotter' in str(type(f)) or type(f).__name__ == '_Finder' for f in sys.meta_path)
    ''', prelude='', SPOTTER_DIR=directory)


def test_a_recorder_within_a_recorder(job, tmp_path):
    inner = tmp_path / 'inner'
    shutil.copytree(job.dir / 'python', inner / 'python')
    job.run(EPOCHS, SPOTTER_DIR=str(inner), PYTHONPATH=f'{inner}/python:{job.dir}/python')
    assert not job.rings() and len(rings.read_all(inner)) == 1


# --------------------------------------------------------------------------------- marks in Python


def test_marks(job):
    job.run('''
    import spotter_mark as mark
    assert mark.enabled
    for epoch in range(2):
        mark.epoch(epoch)
        for i in range(3):
            with mark.waiting():
                pass
            with mark.range('forward'):
                with mark.range('inner'):
                    pass
            mark.step(batch=16)
        mark.eval_step()
        with mark.checkpoint() as c:
            c.nbytes = 77
    mark.epoch_end()
    mark.mark('loss', 3)
    mark.mark('nothing')
    mark.mark('wrong', 'value')
    mark.range_pop()
    mark.input_end()
    mark.checkpoint_end()
    ''', prelude='')
    ring = job.ring()
    assert ring.facts == {'hook': 'marks'}
    assert [(s.index, s.epoch, s.batch) for s in ring.of('step', 0)] == \
        [(i, i // 3, 16) for i in range(6)]
    assert all(s.dur > 0 and s.wait > 0 for s in ring.of('step', 0))
    assert [(s.index, s.batch) for s in ring.of('step', 1)] == [(0, None), (1, None)]
    assert [e.index for e in ring.of('epoch')] == [0, 1]
    assert [(r.name, r.depth) for r in ring.of('range')] == [('inner', 1), ('forward', 0)] * 6
    assert [c.bytes for c in ring.of('checkpoint')] == [77, 77]
    assert [(m.name, m.value) for m in ring.of('mark')] == [('loss', 3), ('nothing', None), ('wrong', None)]


def test_marks_after_fork_and_in_threads(job):
    job.run('''
    import os, threading
    import spotter_mark as mark
    mark.step()
    if not os.fork():
        mark.step(); mark.step()
        os._exit(0)
    os.wait()
    thread = threading.Thread(target=lambda: [mark.step() for i in range(5)])
    thread.start(); thread.join()
    ''', prelude='')
    assert sorted(len(r.of('step')) for r in job.rings()) == [1, 2, 5]


def test_marks_without_a_recorder(job, root):
    shutil.copy(root / 'inject' / 'python' / 'spotter_mark.py', job.cwd)
    out = job.run('''
    import sys
    import spotter_mark as mark
    mark.step(3); mark.epoch(); mark.mark('x', 1)
    with mark.range('a'), mark.waiting(), mark.checkpoint(): pass
    print(mark.enabled, 'ctypes' in sys.modules)
    ''', prelude='', SPOTTER_DIR='', PYTHONPATH='')
    assert out == 'False False\n' and not job.rings()


def test_a_copy_beside_the_program_comes_first(job):
    (job.cwd / 'spotter_mark.py').write_text('mine = True')
    job.run('import torch, spotter_mark; assert spotter_mark.mine', prelude='')


def test_startup_is_cheap(job):
    """No timing is asserted: only that nothing more than the small file is read."""
    out = job.run('import sys; print(sorted(m for m in sys.modules if "spotter" in m))', prelude='')
    assert out == '[]\n'
