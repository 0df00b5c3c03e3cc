"""Each small training with a known limit, run once under spotter: its limit must be what is named first.

The trainings and what is expected of them are listed in workloads/bottlenecks/corpus.json; bench/corpus runs them
several times and prints a table.
"""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'bench'))
import bottlenecks  # noqa: E402

# Shorter than their default where that is enough for the steps and samples that the finding needs.
SECONDS = {'memory_growing.py': 10, 'swapping.py': 10, 'memory_near_limit.py': 6}
USUAL_SECONDS = 7


@pytest.fixture(scope='module')
def cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp('cache'))


@pytest.mark.parametrize('training', bottlenecks.corpus(), ids=lambda training: training['script'][:-3])
def test_limit_is_named_first(training, spotter, python, cache, tmp_path, monkeypatch):
    monkeypatch.setenv('SPOTTER', spotter)
    seconds = SECONDS.get(training['script'], USUAL_SECONDS)
    for _ in range(3):
        try:
            report = bottlenecks.run(training, python, cache, str(tmp_path / 'run.spot'), seconds)
        except bottlenecks.Missing as reason:
            pytest.skip(str(reason))
        first, busy = bottlenecks.first_finding(report)
        if first == training['expect'] or not busy:
            break
    said = '\n'.join(f"{f['severity']} {f['id']}: {f['text']} {f['evidence']}" for f in report['findings'])
    if first != training['expect'] and busy:
        pytest.skip('this host was busy with other things in each of three tries: ' + said)
    assert first == training['expect'], said
    assert report['steps']['count'] > 0
