# SPDX-License-Identifier: Apache-2.0
"""What `spotter run` puts in front of PYTHONPATH.

It waits for PyTorch to be imported and then loads the step hook (spotter_hook.py) beside it. Everything else
is as if it were not there: its folder leaves sys.path again, the sitecustomize that Python would have found
is run in its place, nothing is printed, nothing raised. Kept small: every Python of the job reads it.
"""
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _load(name, filename):
    """A module of this folder, once."""
    from importlib.util import module_from_spec, spec_from_file_location
    if name not in sys.modules:
        spec = spec_from_file_location(name, os.path.join(_HERE, filename))
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


class _Finder:
    """Stands first in sys.meta_path, only to say "not me" and to prepare what other finders find."""
    watched = {'torch', 'torch._dynamo.eval_frame', 'torch.distributed.checkpoint.state_dict_saver',
               'safetensors.torch'}
    busy = False

    def find_spec(self, name, path=None, target=None):
        if name not in self.watched or self.busy:
            return None
        self.busy = True
        try:
            return _load('spotter_hook', 'spotter_hook.py').prepared(self, name, path, target)
        except Exception:
            return None  # let the import system find out by itself
        finally:
            self.busy = False


class _Last:
    """Stands last in sys.meta_path: `import spotter_mark` works under spotter without a copy."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == 'spotter_mark':
            from importlib.util import spec_from_file_location
            return spec_from_file_location(name, os.path.join(_HERE, 'spotter_mark.py'))


try:
    sys.path.remove(_HERE)
    sys.path_importer_cache.pop(_HERE, None)
except ValueError:
    pass
# A recorder inside a recorder: only the files of the innermost one are for this process.
if os.environ.get('SPOTTER_DIR', '') + '/python' == _HERE and 'torch' not in sys.modules:
    sys.meta_path.insert(0, _Finder())
    sys.meta_path.append(_Last)

# Now the one that would have been found. If there is none, this import fails as it would have failed.
del sys.modules['sitecustomize']
import sitecustomize  # noqa: E402,F401
