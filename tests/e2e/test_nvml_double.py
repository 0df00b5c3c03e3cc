"""The double of libnvidia-ml.so.1 (tests/doubles/nvml): its layouts against NVIDIA's own header, its behaviour
against a client that is not ours (pynvml, PyPI: nvidia-ml-py), and a run that is watched with it in place.
"""
import csv
import glob
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from recordings import run

CLIENT = r'''
import json, sys
try:
    import pynvml as n
except ImportError:
    sys.exit(77)
n.nvmlInit()
out = {'count': n.nvmlDeviceGetCount(), 'driver': n.nvmlSystemGetDriverVersion(), 'gpus': []}
for i in range(out['count']):
    d = n.nvmlDeviceGetHandleByIndex(i)
    memory, second = n.nvmlDeviceGetMemoryInfo(d), n.nvmlDeviceGetMemoryInfo(d, version=n.nvmlMemory_v2)
    gpu = {'name': n.nvmlDeviceGetName(d), 'uuid': n.nvmlDeviceGetUUID(d), 'total': memory.total,
           'used': memory.used, 'used_v2': second.used, 'reserved': second.reserved,
           'utilization': n.nvmlDeviceGetUtilizationRates(d).gpu, 'bus': n.nvmlDeviceGetPciInfo_v3(d).busId,
           'celsius': n.nvmlDeviceGetTemperature(d, n.NVML_TEMPERATURE_GPU),
           'processes': [[p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses_v2(d)]}
    try:
        gpu['mw'] = n.nvmlDeviceGetPowerUsage(d)
    except n.NVMLError as e:
        gpu['mw'] = e.value
    out['gpus'].append(gpu)
n.nvmlShutdown()
json.dump(out, sys.stdout, default=lambda text: text.decode())
'''

SCRIPT = '''gpus 2
driver 535.1
name NVIDIA H100 80GB HBM3
1.utilization 87
1.memory.total 85899345920
1.memory.used 1000
1.memory.reserved 24
1.temperature 61
1.processes 11:5000 12
0.power 250500
1.fail.nvmlDeviceGetPowerUsage 3
'''


@pytest.fixture
def double(spotter, tmp_path):
    """Environment in which the double is the machine's NVML, and its script."""
    folder = Path(spotter).parent / 'tests' / 'doubles' / 'nvml'
    if not (folder / 'libnvidia-ml.so.1').exists():
        pytest.skip('the double is not beside the program: it comes with the build directory')
    script = tmp_path / 'gpus.txt'
    script.write_text(SCRIPT, encoding='ascii')
    return dict(os.environ, LD_LIBRARY_PATH=str(folder), NVML_DOUBLE=str(script)), script


def headers():
    """Where nvml.h may lie: given by hand, the system's, CUDA's, or of the PyPI package with the header."""
    places = [os.environ.get('NVML_INCLUDE', ''), '/usr/include', '/usr/local/cuda/include',
              *glob.glob('/usr/local/cuda*/targets/*/include'),
              *(f'{p}/nvidia/nvml_dev/include' for p in sys.path)]
    return [p for p in places if p and os.path.exists(os.path.join(p, 'nvml.h'))]


@pytest.mark.parametrize('cc', ['gcc', 'clang'])
def test_layouts_are_those_of_the_header(root, cc):
    if not headers():
        pytest.skip('no nvml.h here (CUDA, or PyPI: nvidia-nvml-dev-cu12; else NVML_INCLUDE=FOLDER)')
    if not shutil.which(cc):
        pytest.skip(f'no {cc} here')
    out = run(cc, '-std=gnu17', '-fsyntax-only', '-I', headers()[0], '-I', root / 'src',
              root / 'tests' / 'doubles' / 'nvml' / 'layout_check.c')
    assert out.returncode == 0, out.stderr


def test_another_client_sees_what_the_script_says(double):
    out = subprocess.run([sys.executable, '-c', CLIENT], env=double[0], capture_output=True, text=True,
                         timeout=60, check=False)
    if out.returncode == 77:
        pytest.skip('no pynvml here (PyPI: nvidia-ml-py)')
    assert out.returncode == 0, out.stderr
    seen = json.loads(out.stdout)
    assert (seen['count'], seen['driver']) == (2, '535.1')
    first, second = seen['gpus']
    assert first['mw'] == 250500
    assert first['used'] == first['used_v2'] + first['reserved']
    assert first['processes'] == []
    assert second == {'name': 'NVIDIA H100 80GB HBM3', 'uuid': 'GPU-00000000-0000-0000-0000-000000000001',
                      'total': 85899345920, 'used': 1024, 'used_v2': 1000, 'reserved': 24, 'utilization': 87,
                      'bus': '00000000:42:00.0', 'celsius': 61, 'mw': 3, 'processes': [[11, 5000], [12, None]]}


def watch(spotter, env, tmp_path, command):
    """Run the command under spotter; its report and its samples as (kind, key, metric) -> [value]."""
    recording = str(tmp_path / 'run.spot')
    out = subprocess.run([spotter, 'run', '--interval', '100ms', '-o', recording, '--', 'sh', '-c', command],
                         env=env, capture_output=True, text=True, timeout=60, check=False)
    assert out.returncode == 0, out.stderr
    samples = {}
    for row in csv.DictReader(io.StringIO(run(spotter, 'export', recording).stdout)):
        key = row['entity_kind'], int(row['entity_key']), row['metric']
        samples.setdefault(key, []).append(float(row['value']))
    return out.stderr, samples


def test_a_run_shows_the_gpus_and_which_are_the_jobs(spotter, double, tmp_path):
    env, script = double
    report, samples = watch(spotter, env, tmp_path, f'echo "0.processes $$:1000" >> {script}; sleep 1')
    assert 'NVIDIA H100 80GB HBM3' in report
    assert samples['gpu', 1, 'gpu.utilization'][-1] == 0.87
    assert samples['gpu', 1, 'memory.total'][-1] == 85899345920
    assert samples['gpu', 1, 'memory.used'][-1] == 1000
    assert samples['gpu', 0, 'power'][-1] == 250.5
    assert ('gpu', 1, 'power') not in samples  # not supported: a gap
    assert max(samples['gpu', 0, 'gpu.job_processes']) == 1
    assert samples['gpu', 1, 'gpu.processes'][-1] == 2


def test_a_driver_that_hangs_does_not_hold_the_job_up(spotter, double, tmp_path):
    env, script = double
    report, samples = watch(spotter, env, tmp_path,
                            f'sleep 0.4; echo "hang.nvmlDeviceGetTemperature 3000" >> {script}; sleep 1')
    assert 'NVIDIA H100 80GB HBM3' in report
    assert len(samples['host', 0, 'cpu.user']) >= 10  # the ticks went on


def test_without_the_driver_the_reason_is_told(spotter, tmp_path):
    report, samples = watch(spotter, dict(os.environ), tmp_path, 'true')
    if any(kind == 'gpu' for kind, _, _ in samples):
        pytest.skip('this machine has an NVIDIA GPU')
    assert 'libnvidia-ml.so.1' in report
