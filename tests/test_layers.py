"""The layers of doc/architecture.md, kept by looking at every #include line.

Each folder of src/ may include its own headers and those of the folders named here; the table is a DAG because
each row names only rows above it. inject/ lives in somebody else's process and knows nothing of src/.
"""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

MAY_INCLUDE = {
    'base': [],
    'recording': ['base'],
    'sources': ['base', 'recording'],
    'tracers': ['base', 'recording', 'sources'],
    'record': ['base', 'recording', 'sources', 'tracers'],
    'analyze': ['base', 'recording'],
    'report': ['base', 'recording', 'analyze'],
    'export': ['base', 'recording', 'analyze'],
    'extension': ['base', 'recording', 'export'],
    'commands': ['base', 'recording', 'sources', 'tracers', 'record', 'analyze', 'report', 'export'],
}

# Headers of libraries and of the wire: the folders that may know them.
OUTSIDE = {
    r'sqlite3(ext)?\.h': ['recording', 'extension'],
    r'zstd.*\.h': ['recording'],
    r'(bpf|linux/bpf|linux/btf).*': ['sources'],
    r'jansson\.h': ['analyze', 'report', 'export', 'recording', 'record', 'tracers', 'commands'],
    r'(inject/)?wire\.h': ['tracers'],
    r'spotter/mark\.h': [],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def sources(top):
    return sorted(p for p in (ROOT / top).rglob('*') if p.suffix in ('.c', '.h', '.def'))


def layer_of(path):
    parts = path.relative_to(ROOT / 'src').parts
    return parts[0] if len(parts) > 1 else 'main'


def includes(path):
    return INCLUDE.findall(path.read_text(encoding='utf-8'))


def test_every_folder_has_its_place():
    found = {p.name for p in (ROOT / 'src').iterdir() if p.is_dir()}
    assert found == set(MAY_INCLUDE)


def test_the_table_is_a_dag():
    seen = set()
    for layer, allowed in MAY_INCLUDE.items():
        assert set(allowed) <= seen, f'{layer} names a layer that stands below it'
        seen.add(layer)


@pytest.mark.parametrize('layer', [*MAY_INCLUDE, 'main'])
def test_layer_includes_only_what_it_may(layer):
    allowed = {layer, *MAY_INCLUDE.get(layer, ['base', 'commands'])}
    wrong = []
    for path in sources('src'):
        if layer_of(path) != layer:
            continue
        for header in includes(path):
            first = header.split('/')[0]
            if '/' in header and first in MAY_INCLUDE and first not in allowed:
                wrong.append(f'{path.relative_to(ROOT)} includes {header}')
    assert not wrong


def test_libraries_stay_behind_their_layer():
    wrong = []
    for path in sources('src'):
        for header in includes(path):
            for pattern, layers in OUTSIDE.items():
                if re.fullmatch(pattern, header) and layer_of(path) not in layers:
                    wrong.append(f'{path.relative_to(ROOT)} includes {header}')
    assert not wrong


def test_injected_parts_know_nothing_of_the_program():
    own = {'wire.h', 'spotter/mark.h'}
    wrong = []
    for path in [*sources('inject'), *sources('include')]:
        for header in includes(path):
            if header.split('/')[0] in MAY_INCLUDE and '/' in header and header not in own:
                wrong.append(f'{path.relative_to(ROOT)} includes {header}')
    assert not wrong


def test_files_include_nothing_by_a_path_upwards():
    assert not [f'{p.relative_to(ROOT)} includes {h}' for top in ('src', 'inject', 'include')
                for p in sources(top) for h in includes(p) if h.startswith('..')]
