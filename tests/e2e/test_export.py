"""spotter export and spotter info: what was recorded comes out again, whole, quoted, and in bounded pieces."""
import csv
import io
import json
import os
import pty
import signal
import subprocess
import time

import pytest

from recordings import (SAMPLES, SECOND, SERIES, STEPS, T0, TICKS, make, recording,  # noqa: F401
                        run, tool)


def export(spotter, recording, *options):
    out = run(spotter, 'export', recording, *options)
    assert out.returncode == 0, out.stderr
    assert out.stderr == ''
    return out.stdout


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_long_csv_has_a_row_per_sample_in_the_order_of_time(spotter, recording):
    table = rows(export(spotter, recording))
    assert list(table[0]) == ['t_ns', 'time', 'entity', 'entity_kind', 'entity_id', 'entity_key', 'metric',
                              'value', 'unit', 'source']
    assert len(table) == SAMPLES
    times = [int(row['t_ns']) for row in table]
    assert times == sorted(times)
    job = [row for row in table if row['entity_kind'] == 'job' and row['metric'] == 'cpu.user']
    assert [int(row['value']) for row in job] == [i * SECOND for i in range(TICKS)]
    assert {row['unit'] for row in job} == {'ns'}
    assert {row['entity_key'] for row in job} == {'4001'}


def test_cells_are_quoted(spotter, recording):
    text = export(spotter, recording, '-m', 'temperature')
    assert '"chip, ""package"""' in text
    table = rows(text)
    assert {row['entity'] for row in table} == {'chip, "package"'}
    assert [float(row['value']) for row in table][:3] == [40.0, 40 + 0.1, 40 + 0.1 * 2]


def test_what_was_not_read_has_no_row_and_is_an_empty_cell(spotter, recording):
    table = rows(export(spotter, recording, '-m', 'temperature'))
    assert len(table) == TICKS - 10
    wide = rows(export(spotter, recording, '--wide', '-m', 'temperature,memory.total'))
    assert [row['chip, "package":temperature'] == '' for row in wide] == [50 <= i < 60
                                                                       for i in range(TICKS)]


def test_wide_csv_has_a_column_per_series(spotter, recording):
    table = rows(export(spotter, recording, '--wide'))
    assert len(table) == TICKS
    assert len(table[0]) == SERIES + 2
    assert {'host:cpu.user', 'cpu3:cpu.idle', 'job:memory.rss', 'python3[4001]:cpu.user'} <= set(table[0])
    assert [int(row['job:memory.rss']) for row in table] == [100_000_000 + i * 1_000_000
                                                            for i in range(TICKS)]
    assert [row['pt_data_worker[4003]:memory.rss'] for row in table] == ['30000000'] * 60 + [''] * 60


def test_columns_of_the_same_name_are_told_apart(spotter, tmp_path):
    path = make(spotter, tmp_path / 'many.spot', '--processes', '5000', '--ticks', '2')
    names = export(spotter, path, '--wide').splitlines()[0].split(',')
    assert len(names) == len(set(names)) > 15000


def test_events_have_the_columns_of_their_kind(spotter, recording):
    table = rows(export(spotter, recording, '--events', 'step'))
    assert len(table) == STEPS
    assert list(table[0])[-5:] == ['step', 'phase', 'epoch', 'batch', 'input_wait_ns']
    assert [int(row['step']) for row in table] == list(range(STEPS))
    assert table[9]['phase'] == 'evaluation' and table[10]['phase'] == 'train'
    assert [row['batch'] for row in table if row['batch'] != '64'] == [''] * (STEPS // 100)
    marks = rows(export(spotter, recording, '--events', 'mark'))
    assert [row['name'] for row in marks] == ['learning rate, "halved"']


def test_one_csv_holds_one_kind_of_event(spotter, recording):
    out = run(spotter, 'export', recording, '--events', 'step,gc')
    assert out.returncode == 1
    assert 'events of one kind' in out.stderr


@pytest.mark.parametrize('begin, end, first, count', [
    ('10s', '20s', 10, 10), ('-9s', None, 111, 9), (None, '1m', 0, 60), ('119', None, 119, 1),
    ('119.5s', None, None, 0),
])
def test_a_part_of_the_time(spotter, recording, begin, end, first, count):
    """The end is that of the last event, just before a tick that never came."""
    options = [*(('--from', begin) if begin else ()), *(('--until', end) if end else ())]
    table = rows(export(spotter, recording, '-m', 'cpu.user', '-e', 'job', *options))
    assert len(table) == count
    if count:
        assert int(table[0]['t_ns']) == T0 + first * SECOND


def test_a_date_and_time_is_a_moment(spotter, recording):
    table = rows(export(spotter, recording, '-m', 'cpu.user', '-e', 'job'))
    for at in (table[30]['time'], table[30]['time'].replace('T', ' ')):
        part = rows(export(spotter, recording, '-m', 'cpu.user', '-e', 'job', '--from', at))
        assert [row['t_ns'] for row in part] == [row['t_ns'] for row in table[30:]]


def test_entities_by_kind_and_key(spotter, recording):
    table = rows(export(spotter, recording, '-e', 'process:4002,cpu:1'))
    assert {(row['entity_kind'], row['entity_key']) for row in table} == {('process', '4002'), ('cpu', '1')}


def test_json_lines_hold_everything(spotter, recording):
    found = {}
    for item in lines(export(spotter, recording, '--json')):
        found.setdefault(item['type'], []).append(item)
    assert {kind: len(items) for kind, items in found.items()} == {
        'run': 1, 'entity': 10, 'series': SERIES, 'sample': SAMPLES, 'event': STEPS + 10, 'gap': 1, 'notice': 1,
        'finding': 1}
    assert found['run'][0]['command'] == ['python3', 'train.py']
    assert found['run'][0]['exit_code'] == 0
    assert found['run'][0]['fact.torch'] == '1.13.0'
    assert found['event'][0]['args'] == {'step': 0, 'phase': 'train', 'epoch': 0, 'batch': 64,
                                         'input_wait_ns': 20_000_000}
    assert found['gap'][0]['reason'] == 'no permission'
    assert found['finding'][0]['evidence'] == [{'text': 'input wait', 'value': 0.25}]
    process = [e for e in found['entity'] if e['kind'] == 'process'][0]
    assert process['attrs'] == {'cmdline': 'python3 train.py --name "a,b"'}


def test_csv_and_json_agree(spotter, recording):
    table = rows(export(spotter, recording))
    samples = [x for x in lines(export(spotter, recording, '--json')) if x['type'] == 'sample']
    assert [(int(row['t_ns']), row['time'], row['metric'], float(row['value'])) for row in table] == [
        (x['t_ns'], x['time'], x['metric'], float(x['value'])) for x in samples]


def test_only_what_was_asked_for(spotter, recording):
    found = {x['type'] for x in lines(export(spotter, recording, '--json', '-m', 'cpu.*'))}
    assert 'sample' in found and 'event' not in found
    found = {x['type'] for x in lines(export(spotter, recording, '--json', '--events', 'gc'))}
    assert 'event' in found and 'sample' not in found


def test_into_a_file(spotter, recording, tmp_path):
    for name in ('out.csv', 'out.jsonl'):
        export(spotter, recording, '-o', str(tmp_path / name))
    assert len(rows((tmp_path / 'out.csv').read_text())) == SAMPLES
    assert lines((tmp_path / 'out.jsonl').read_text())[0]['type'] == 'run'
    assert export(spotter, recording, '-o', '-') == (tmp_path / 'out.csv').read_text()


def test_never_over_the_recording_itself(spotter, tmp_path):
    path = make(spotter, tmp_path / 'run.spot')
    before = open(path, 'rb').read()
    os.symlink(path, tmp_path / 'other')
    for target in (path, str(tmp_path / 'other')):
        out = run(spotter, 'export', path, '-o', target)
        assert out.returncode == 1 and 'the recording itself' in out.stderr
    assert open(path, 'rb').read() == before


@pytest.mark.parametrize('options, words', [
    (['--to', 'xml'], "no format 'xml'"),
    (['--to', 'jsonl', '--wide'], '--wide is a shape of CSV'),
    (['--wide', '--events', 'step'], '--wide is for samples'),
    (['--to', 'csv', '--json'], 'contradict'),
    (['a.spot', 'b.spot'], 'one recording'),
    (['--metric'], 'metric'),
])
def test_bad_options(spotter, recording, options, words):
    out = run(spotter, 'export', recording, *options)
    assert out.returncode == 2
    assert words in out.stderr and out.stdout == ''


@pytest.mark.parametrize('options, words', [
    (['-m', 'cpu.usr'], 'the recording holds cpu.user,'),
    (['-e', 'gpu'], 'nothing matches --entity gpu'),
    (['--events', 'kernel'], 'the recording holds step,'),
    (['--from', 'yesterday'], "'yesterday' is no time"),
    (['-o', '/nowhere/out.csv'], '/nowhere/out.csv: No such file or directory'),
])
def test_what_is_not_there(spotter, recording, options, words):
    out = run(spotter, 'export', recording, *options)
    assert out.returncode == 1
    assert words in out.stderr and out.stdout == ''


def test_a_reader_that_leaves_is_no_failure(spotter, recording):
    for restore in (True, False):
        p = subprocess.Popen([spotter, 'export', recording], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             restore_signals=restore)
        p.stdout.readline()
        p.stdout.close()
        assert p.stderr.read() == b''
        p.stderr.close()
        assert p.wait() == 0


def test_a_full_disk_is_said(spotter, recording):
    if not os.path.exists('/dev/full'):
        pytest.skip('no /dev/full')
    out = run(spotter, 'export', recording, '-o', '/dev/full')
    assert out.returncode == 1
    assert '/dev/full: No space left on device' in out.stderr


def test_no_progress_where_nobody_looks(spotter, recording):
    """On a terminal it begins after a second only, so a short export says nothing there either."""
    reader, writer = pty.openpty()
    subprocess.run([spotter, 'export', recording], stdout=subprocess.DEVNULL, stderr=writer, check=True)
    os.close(writer)
    try:
        said = os.read(reader, 4096)
    except OSError:
        said = b''
    os.close(reader)
    assert said == b''


def test_memory_does_not_grow_with_the_recording(spotter, tmp_path):
    with open(spotter, 'rb') as f:
        if b'__asan_init' in f.read():
            pytest.skip('a sanitizer keeps what was freed')
    peaks = []
    for ticks in ('2000', '60000'):
        path = make(spotter, tmp_path / f'{ticks}.spot', '--ticks', ticks)
        pid = os.posix_spawn(spotter, [spotter, 'export', path, '-o', '/dev/null'], os.environ)
        _, status, usage = os.wait4(pid, 0)
        assert status == 0
        peaks.append(usage.ru_maxrss)
    assert peaks[1] < 2 * peaks[0] + 8192


def test_of_a_recording_that_was_cut_off(spotter, tmp_path):
    path = make(spotter, tmp_path / 'run.spot', '--unfinished')
    assert len(rows(export(spotter, path))) == SAMPLES


def test_of_a_recording_that_grows(spotter, tmp_path):
    path = tmp_path / 'run.spot'
    p = subprocess.Popen([tool(spotter), '--live', '--ticks', '1000', '--interval-ms', '20', path])
    try:
        counts = []
        deadline = time.monotonic() + 30
        while len(counts) < 3 and time.monotonic() < deadline:
            out = run(spotter, 'export', str(path), '-m', 'cpu.user', '-e', 'job')
            n = len(rows(out.stdout)) if out.returncode == 0 else 0
            if n and (not counts or n > counts[-1]):
                counts.append(n)
        assert len(counts) == 3
    finally:
        p.send_signal(signal.SIGKILL)
        p.wait()
    assert len(rows(export(spotter, str(path), '-m', 'cpu.user', '-e', 'job'))) >= counts[-1]


def test_a_recording_begins_while_others_look_at_it(spotter, tmp_path):
    """Who waits for a recording opens it as soon as the file is there; that must not keep it from being made."""
    path = str(tmp_path / 'run.spot')
    look = 'while :; do "$0" info "$1" >/dev/null 2>&1; done'
    lookers = [subprocess.Popen(['sh', '-c', look, spotter, path]) for _ in range(2)]
    try:
        for _ in range(60):
            make(spotter, path, '--ticks', '2')
            os.unlink(path)
    finally:
        for p in lookers:
            p.kill()
            p.wait()


def damaged(path, tmp_path):
    """Copies of a recording with a part cut off or some bytes changed."""
    data = open(path, 'rb').read()
    for i in range(24):
        copy = bytearray(data if i % 3 else data[:len(data) * (i + 1) // 25])
        for k in range(i):
            if copy:
                copy[(i * 7919 + k * 104729) % len(copy)] ^= 1 << (k % 8)
        at = tmp_path / f'damaged{i}.spot'
        at.write_bytes(copy)
        yield str(at)


def test_damaged_recordings_give_what_is_left_or_a_reason(spotter, recording, tmp_path):
    for path in damaged(recording, tmp_path):
        for command in (['export'], ['export', '--wide'], ['export', '--json'], ['info'], ['info', '--json'],
                        ['top', '--once']):
            out = subprocess.run([spotter, *command, path], capture_output=True, timeout=60, check=False)
            assert out.returncode in (0, 1), (path, command)
            assert out.returncode == 0 or out.stderr


def test_info_counts_what_there_is(spotter, recording):
    info = json.loads(run(spotter, 'info', recording, '--json').stdout)
    assert info['entities'] == {'host': 1, 'cpu': 4, 'sensor': 1, 'job': 1, 'process': 3}
    assert sum(m['samples'] for m in info['metrics']) == SAMPLES == info['file']['samples']
    assert sum(m['series'] for m in info['metrics']) == SERIES
    assert all(0 < m['bytes_per_sample'] < 8 for m in info['metrics'])
    assert {t['name']: t['events'] for t in info['tracks']} == {'step': STEPS, 'epoch': 2, 'checkpoint': 1,
                                                                'gc': 6, 'mark': 1}
    assert info['gaps'] == [{'metric': 'temperature', 'reason': 'no permission', 'gaps': 1, 'total_s': 10.0}]
    assert [n['text'] for n in info['notices']] == ['a loader worker ended']
    assert info['findings'] == ['input-bound']
    assert info['facts']['command_line'] == 'python3 train.py'
    assert info['recording']['live'] is False and info['file']['damaged_parts'] == 0


def test_info_as_text(spotter, recording):
    out = run(spotter, 'info', recording)
    assert out.returncode == 0 and out.stderr == ''
    for words in ('complete', f'{SAMPLES:,} samples', 'job 1   process 3', 'no permission',
                  'a loader worker ended'):
        assert words in out.stdout


def test_info_of_nothing(spotter, tmp_path):
    out = run(spotter, 'info', cwd=tmp_path)
    assert out.returncode == 1
    assert out.stderr == 'spotter: run.spot: No such file or directory\n'
