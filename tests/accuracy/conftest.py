"""Fixtures: `spotter`, the program under test; `load`, the program of known loads that was built beside it."""
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope='session')
def spotter():
    program = Path(os.environ.get('SPOTTER', ROOT / 'build' / 'spotter')).resolve()
    if not os.access(program, os.X_OK):
        pytest.fail(f'{program} is not there: run make first', pytrace=False)
    return program


@pytest.fixture(scope='session')
def load(spotter):
    for build in (spotter.parent, ROOT / 'build'):
        program = build / 'tests' / 'accuracy' / 'load'
        if os.access(program, os.X_OK):
            return program
    pytest.skip('tests/accuracy/load is not built')
