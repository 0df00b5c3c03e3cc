# SPDX-License-Identifier: Apache-2.0
"""What `spotter run` puts in front of PYTHONPATH.

It waits for PyTorch to be imported and then loads the step hook (spotter_hook.py) beside it. Everything else
is as if it were not there: its folder leaves sys.path again, the sitecustomize that Python would have found
is run in its place, nothing is printed, nothing raised. Kept small: every Python of the job reads it.
"""
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


class _Finder:
    """Stands first in sys.meta_path, only to say "not me" and to prepare what other finders find."""

    # Modules after whose import there is something to hook.
    watched = {'torch', 'torch._dynamo.eval_frame', 'torch.distributed.checkpoint.state_dict_saver',
               'safetensors.torch'}

    def __init__(self):
        self.busy = set()

    def find_spec(self, name, path=None, target=None):
        if name not in self.watched or name in self.busy:
            return None
        self.busy.add(name)
        try:
            return self.prepare(name, path, target)
        except Exception:
            return None  # let the import system find out by itself
        finally:
            self.busy.discard(name)

    def prepare(self, name, path, target):
        """The spec as the others find it; its loader will tell the hook when the module has run."""
        for finder in sys.meta_path:
            find = getattr(finder, 'find_spec', None)
            if finder is self or find is None:
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
            _imported(name, module)

        loader.exec_module = exec_module
        return spec


class _Last:
    """Stands last in sys.meta_path: `import spotter_mark` works under spotter without a copy."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != 'spotter_mark':
            return None
        from importlib.util import spec_from_file_location
        return spec_from_file_location(name, os.path.join(_HERE, 'spotter_mark.py'))


def _imported(name, module):
    try:
        _hook().imported(name, module)
    except Exception as e:
        tb = e.__traceback__
        while tb.tb_next is not None:
            tb = tb.tb_next
        # What a signal handler raised meanwhile is the job's.
        if not tb.tb_frame.f_code.co_filename.startswith((_HERE, '<frozen')):
            raise


def _hook():
    """The hook, loaded once."""
    module = sys.modules.get('spotter_hook')
    if module is None:
        from importlib.util import module_from_spec, spec_from_file_location
        path = os.path.join(_HERE, 'spotter_hook.py')
        spec = spec_from_file_location('spotter_hook', path)
        module = module_from_spec(spec)
        sys.modules['spotter_hook'] = module
        spec.loader.exec_module(module)
    return module


def _watch():
    # A recorder inside a recorder: only the files of the innermost one are for this process.
    directory = os.environ.get('SPOTTER_DIR')
    if not directory or not os.path.isdir(directory):
        return
    if os.path.join(directory, 'python') != _HERE and \
            not os.path.samefile(os.path.join(directory, 'python'), _HERE):
        return
    sys.meta_path.insert(0, _Finder())
    sys.meta_path.append(_Last())
    if 'torch' in sys.modules:  # a .pth file was faster
        _imported('torch', sys.modules['torch'])


def _leave():
    """Take our folder off sys.path, once."""
    for i, entry in enumerate(sys.path):
        if entry and os.path.abspath(entry) == _HERE:
            del sys.path[i]
            sys.path_importer_cache.pop(entry, None)
            break


try:
    _leave()
    _watch()
except Exception:
    pass

# Now the one that would have been found. If there is none, this import fails as it would have failed.
del sys.modules['sitecustomize']
import sitecustomize  # noqa: E402,F401
