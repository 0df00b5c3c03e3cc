# SPDX-License-Identifier: Apache-2.0
"""The step hook: what of PyTorch (1.13 and 2.x) is watched, and how.

Loaded by sitecustomize.py once torch has been imported. Three places are patched, each an attribute of a
class or module whose original is called unchanged:

  Optimizer._optimizer_step_code   an empty method that every optimizer's step calls at its end
  DataLoader.__iter__ and _BaseDataLoaderIter.__next__   iterations and the wait for a batch
  torch.save and a few other savers   checkpoints

The rule is that the job never notices: no output, no exception, no random number drawn, no CUDA call, no
object of the job kept alive. If something of our own fails, the hook takes itself out and says so once in the
recording. spotter_steps.py decides what a step is; the rings are those of spotter_mark.py.
"""
import atexit
import functools
import gc
import io
import os
import sys
import threading
import time
import weakref
from collections import UserDict

_HERE = os.path.dirname(os.path.abspath(__file__))
_now = time.monotonic_ns


def _load(name, filename):
    """A module of this folder under a name of our own (the job may have its own spotter_mark)."""
    from importlib.util import module_from_spec, spec_from_file_location
    spec = spec_from_file_location(name, os.path.join(_HERE, filename))
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_wire = _load('_spotter_wire', 'spotter_mark.py')
_steps = _load('_spotter_steps', 'spotter_steps.py')
NONE = _wire.NONE


class Hook:
    """Everything this process's hook holds."""

    def __init__(self, directory):
        self.rings = _wire.Rings(directory, 'torch hook')
        self.patches = []  # (owner, name, original, ours)
        self.saving = threading.local()
        self.torch = None
        self.forget()
        self.steps = _steps.Steps(self.ring, self.decided, self.stepped)

    def forget(self):
        self.facts = {}
        self.optimizers = set()
        self.announced = False

    def forked(self):
        """In a child: the parent's rings and steps are the parent's."""
        self.rings.forget()
        self.forget()
        self.saving = threading.local()
        self.steps.reset()

    def ring(self):
        ring = self.rings.get()
        if ring is not None and not self.announced:
            self.announced = True
            begin = _now()
            self.announce(ring)
            self.steps.account_rare(begin)
        return ring

    # ------------------------------------------------------------------------------------ patching

    def patch(self, owner, name, ours):
        original = owner.__dict__[name]
        self.patches.append((owner, name, original, ours))
        setattr(owner, name, ours)

    def remove(self, error):
        """Something of ours went wrong: take everything out, and say it in the recording."""
        for owner, name, original, ours in self.patches:
            try:
                if owner.__dict__.get(name) is ours:
                    setattr(owner, name, original)
            except Exception:
                pass
        self.patches = []
        try:
            ring = self.rings.get()
            if ring is not None:
                ring.text(_wire.NOTICE, 'the step hook stopped: %s: %s' % (type(error).__name__, error))
        except Exception:
            pass

    def failed(self, error):
        """From an except clause. True if the error is the hook's own; else the caller raises it again: it is
        of the job, a signal handler that raised while our code ran."""
        if not _wire.ours(error):
            return False
        self.remove(error)
        return True

    def finish(self):
        try:
            self.steps.finish()
        except Exception:
            pass

    # --------------------------------------------------------------------------------------- facts

    def fact(self, ring, key, value):
        text = str(value)
        if self.facts.get(key) != text and len(self.facts) < 64:
            self.facts[key] = text
            ring.text(_wire.FACT, '%s=%s' % (key, text))

    def announce(self, ring):
        torch = self.torch
        self.fact(ring, 'torch', torch.__version__)
        self.fact(ring, 'python', '%d.%d.%d' % sys.version_info[:3])
        self.fact(ring, 'torch.threads', torch.get_num_threads())
        self.fact(ring, 'torch.cuda', getattr(torch.version, 'cuda', None) or 'none')

    def stepped(self, optimizer):
        """An optimizer stepped that was not the last one."""
        if id(optimizer) in self.optimizers or len(self.optimizers) > 16:
            return
        first = not self.optimizers
        self.optimizers.add(id(optimizer))
        ring = self.ring()
        if ring is None:
            return
        begin = _now()
        prefix = 'optimizer' if first else 'optimizer%d' % len(self.optimizers)
        self.fact(ring, prefix, type(optimizer).__name__)
        parameters = [p for group in optimizer.param_groups for p in group['params']]
        plain = (self.torch.Tensor, self.torch.nn.Parameter)
        if parameters and all(type(p) in plain for p in parameters):  # else: code of the job would run
            self.fact(ring, prefix + '.parameters', sum(p.numel() for p in parameters))
            if first:
                self.fact(ring, 'device', parameters[0].device)
        if first:
            self.distributed(ring)
        self.steps.account_rare(begin)

    def distributed(self, ring):
        dist = sys.modules.get('torch.distributed')
        if dist is not None and dist.is_available() and dist.is_initialized():
            self.fact(ring, 'rank', dist.get_rank())
            self.fact(ring, 'world_size', dist.get_world_size())
            self.fact(ring, 'backend', dist.get_backend())

    def decided(self, p, training):
        """What an iteration over a loader is."""
        ring = self.ring()
        if ring is None:
            return
        begin = _now()
        prefix = 'loader.' if training else 'eval_loader.'
        for key, value in zip(_ABOUT_LOADER, p.about):
            if isinstance(value, int):  # and bool
                self.fact(ring, prefix + key.replace('num_', ''), value)
        self.fact(ring, 'dataset' if training else 'eval_dataset', p.about[-1])
        self.steps.account_rare(begin)

    # ----------------------------------------------------------------------------------- the loader

    def begun(self, loader, iterator, begin):
        """The loader has made an iterator, or reset its only one."""
        try:
            known = loader in self.steps.trained
        except TypeError:
            known = False
        values = loader.__dict__
        about = [values.get(key) for key in _ABOUT_LOADER]
        about.append(type(values.get('dataset')).__name__)
        iterator.__dict__['_spotter_pass'] = _steps.Pass(weakref.ref(loader), about, begin, _now(), known)


_ABOUT_LOADER = ('num_workers', 'batch_size', 'pin_memory', 'prefetch_factor', 'persistent_workers')


def _measure(data, tensor, size):
    """How the size of batches like this one is had: a function of the batch, or None. size: what the loader
    says."""
    if type(data) is tensor:
        return _size_of if data.dim() else None
    if isinstance(data, (list, tuple)) and data:
        if type(data[0]) is tensor and data[0].dim():
            return _size_of_first
        inner = _measure(data[0], tensor, size)
        return inner and (lambda d: inner(d[0]))
    if isinstance(data, UserDict):
        inner = _measure(data.data, tensor, size)
        return inner and (lambda d: inner(d.data))
    if type(data) is dict and data:
        key = next(iter(data))
        inner = _measure(data[key], tensor, size)
        return inner and (lambda d: inner(d[key]))
    return (lambda d: size) if isinstance(size, int) else None


def _size_of(data):
    return data.shape[0]


def _size_of_first(data):
    return data[0].shape[0]


def _batch_size(p, data, tensor):
    """The samples in a batch; -1 where that cannot be told."""
    try:
        if p.measure is None:
            p.measure = _measure(data, tensor, p.about[1]) or (lambda d: -1)
        return p.measure(data)
    except Exception as e:
        if not _wire.ours(e):
            raise
        return -1


def _compiling(torch):
    """A function that is true while torch.compile looks at the code around it; None where there is none."""
    for owner in (getattr(torch, 'compiler', None), getattr(torch, '_utils', None)):
        function = getattr(owner, 'is_compiling', None)
        if function is not None:
            return function
    return None


def _hook_optimizers(hook, torch):
    step, failed = hook.steps.step, hook.failed
    compiling = _compiling(torch) or bool  # bool() is False
    original = torch.optim.Optimizer.__dict__['_optimizer_step_code']

    # The profiler knows this method by its code and reads the local variable `self`.
    @functools.wraps(original)
    def _optimizer_step_code(self):
        if compiling():  # the step is being compiled: leave nothing of us in it
            return
        try:
            step(self)
        except Exception as e:
            if not failed(e):
                raise

    hook.patch(torch.optim.Optimizer, '_optimizer_step_code', _optimizer_step_code)


def _hook_dynamo(hook, module):
    """torch.compile in early 2.x takes the wrapper that calls _optimizer_step_code off torch.optim's classes:
    put one of our own in its place."""
    patcher = module.TorchPatcher
    original = patcher.__dict__['patch'].__get__(None, patcher)

    def classes():
        optim = hook.torch.optim
        return [c for c in vars(optim).values()
                if isinstance(c, type) and issubclass(c, optim.Optimizer) and 'step' in vars(c)]

    def patch():
        before = {c: vars(c)['step'] for c in classes()}
        original()
        try:
            for c, old in before.items():
                if vars(c)['step'] is getattr(old, '__wrapped__', None):
                    hook.patch(c, 'step', _after(hook, vars(c)['step']))
        except Exception as e:
            if not hook.failed(e):
                raise

    hook.patch(patcher, 'patch', staticmethod(functools.update_wrapper(patch, original)))


def _after(hook, original):
    call = hook.torch.optim.Optimizer._optimizer_step_code

    @functools.wraps(original)
    def step(self, *args, **kwargs):
        out = original(self, *args, **kwargs)
        call(self)
        return out

    return step


def _hook_loader(hook, torch):
    from torch.utils.data import dataloader
    base, loader_class = dataloader._BaseDataLoaderIter, dataloader.DataLoader
    worker_info = torch.utils.data.get_worker_info
    make, following = loader_class.__dict__['__iter__'], base.__dict__['__next__']
    steps, failed, tensor, grad_enabled = hook.steps, hook.failed, torch.Tensor, torch.is_grad_enabled
    fetching, fetch, end = steps.fetching, steps.fetch, steps.end
    countdown = 16

    @functools.wraps(make)
    def __iter__(self):
        begin = _now()
        iterator = make(self)
        try:
            if isinstance(iterator, base) and worker_info() is None:
                hook.begun(self, iterator, begin)
        except Exception as e:
            if not failed(e):
                raise
        return iterator

    @functools.wraps(following)
    def __next__(self):
        nonlocal countdown
        p = self._spotter_pass
        if p is None:
            return following(self)
        t0 = _now()
        try:
            if steps.open is not None:
                fetching(p, t0)
            grad = grad_enabled()
        except Exception as e:
            if not failed(e):
                raise
        try:
            data = following(self)
        except StopIteration:
            try:
                end(p, _now())
            except Exception as e:
                if not failed(e):
                    raise
            raise
        t1 = _now()
        rare = steps.rare
        try:
            fetch(p, t0, t1, _batch_size(p, data, tensor), grad)
            countdown -= 1
            if not countdown:
                countdown = 16
                steps.account(16 * (_now() - t1 - steps.rare + rare + _steps.UNSEEN_NS))
        except Exception as e:
            if not failed(e):
                raise
        return data

    base._spotter_pass = None
    hook.patch(loader_class, '__iter__', __iter__)
    hook.patch(base, '__next__', __next__)


# ------------------------------------------------------------------------------------------ checkpoints


# Asking other file objects would run code of the job.
_FILES = (io.BytesIO, io.BufferedWriter, io.BufferedRandom, io.FileIO)


def _position(f):
    """Where a file object stands; None for a path or what has no position."""
    try:
        return f.tell() if type(f) in _FILES else None
    except (OSError, ValueError):
        return None


def _written(f, before):
    """Bytes that a save to f (a path or a file object) wrote."""
    try:
        if isinstance(f, (str, bytes, os.PathLike)):
            return os.stat(f).st_size
        return f.tell() - before if before is not None else NONE
    except (OSError, ValueError):
        return NONE


def _saver(hook, original, position, keyword):
    """A function that saves to args[position], timed. A save within a save counts once."""
    @functools.wraps(original)
    def save(*args, **kwargs):
        if getattr(hook.saving, 'now', False) or hook.torch.utils.data.get_worker_info() is not None:
            return original(*args, **kwargs)
        f = args[position] if len(args) > position else kwargs.get(keyword)
        before = _position(f)
        hook.saving.now = True
        t = _now()
        try:
            result = original(*args, **kwargs)
        finally:
            hook.saving.now = False
        try:
            took = _now() - t
            ring = hook.ring()
            if ring is not None:
                ring.put(_wire.CHECKPOINT, t, took, _written(f, before))
        except Exception as e:
            if not hook.failed(e):
                raise
        return result

    return save


def _hook_save(hook, torch):
    save = _saver(hook, torch.serialization.save, 1, 'f')
    for owner in (torch.serialization, torch):
        if owner.__dict__.get('save') is save.__wrapped__:
            hook.patch(owner, 'save', save)


def _hook_safetensors(hook, module):
    hook.patch(module, 'save_file', _saver(hook, module.save_file, 1, 'filename'))


def _hook_distributed_save(hook, module):
    hook.patch(module, 'save', _saver(hook, module.save, 1 << 20, ''))


# ------------------------------------------------------------------------------------------------ start

_hook = None


def _torch(hook, torch):
    hook.torch = torch
    for part in (_hook_optimizers, _hook_loader, _hook_save):
        try:
            part(hook, torch)
        except Exception as e:
            hook.remove(e)
            return
    gc.callbacks.append(hook.steps.pause)
    os.register_at_fork(after_in_child=hook.forked)
    atexit.register(hook.finish)


_PARTS = {
    'torch': _torch,
    'torch._dynamo.eval_frame': _hook_dynamo,
    'torch.distributed.checkpoint.state_dict_saver': _hook_distributed_save,
    'safetensors.torch': _hook_safetensors,
}


def prepared(finder, name, path, target):
    """The spec of a module we wait for, as the finders after ours find it; its loader will tell us when the
    module has run."""
    for other in sys.meta_path:
        find = getattr(other, 'find_spec', None)
        if other is finder or find is None:
            continue
        spec = find(name, path, target)
        if spec is not None:
            break
    else:
        return None
    loader = spec.loader
    run = loader.exec_module

    def exec_module(module):
        del loader.exec_module  # the loader is what it was
        run(module)
        try:
            _imported(name, module)
        except Exception as e:
            if not _wire.ours(e):
                raise

    loader.exec_module = exec_module
    return spec


def _imported(name, module):
    """A module we wait for has been imported."""
    global _hook
    if _hook is None:
        directory = os.environ.get('SPOTTER_DIR', '')
        if not directory.startswith('/') or not os.path.isdir(directory):
            return
        _hook = Hook(directory)
    if name != 'torch' and not _hook.patches:  # taken out, or torch is not there yet
        return
    _PARTS[name](_hook, module)
