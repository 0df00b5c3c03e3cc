"""Run every test there is and count them: check.py [--unit-only | --pytest-only] BUILD_DIR [PYTEST ARGUMENT...]

Unit tests are counted by their functions (cmocka prints one line for each), not by their programs. What each
said goes to BUILD_DIR/meson-logs/testlog.txt and BUILD_DIR/check-pytest.xml. The last line is
"N passed, N failed, N skipped"; the exit status is 1 if anything failed or nothing ran.
"""
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def add(*counts):
    return tuple(sum(column) for column in zip(*counts)) if counts else (0, 0, 0)


def count_unit_program(result):
    """(passed, failed, skipped) of one test program from what meson kept of it."""
    said = result.get('stdout', '') + '\n' + result.get('stderr', '')
    run = said.count('[ RUN      ]')
    ok = said.count('[       OK ]')
    skipped = sum(line.startswith('[  SKIPPED ] ') and 'test(s)' not in line
                  for line in said.splitlines())
    if result['result'] == 'SKIP':
        return 0, 0, 1
    good = result['result'] in ('OK', 'EXPECTEDFAIL')
    if not run:  # not cmocka, or died before its first test
        return (1, 0, 0) if good else (0, 1, 0)
    skipped = min(skipped, run - ok)
    failed = run - ok - skipped
    return ok, failed if good else max(failed, 1), skipped


def unit_tests(build):
    meson = shutil.which('meson') or '/usr/bin/meson'
    if subprocess.run([meson, '--version'], capture_output=True).returncode:
        meson = '/usr/bin/meson'
    log = build / 'meson-logs' / 'testlog.json'
    log.unlink(missing_ok=True)
    print('unit tests', flush=True)
    status = subprocess.run([meson, 'test', '-C', str(build), '--no-rebuild', '--print-errorlogs'],
                            stdin=subprocess.DEVNULL).returncode
    if not log.exists():
        return 0, 1 if status else 0, 0
    results = [json.loads(line) for line in log.read_text(encoding='utf-8').splitlines()]
    counted = add(*map(count_unit_program, results))
    return add(counted, (0, 1, 0)) if status and not counted[1] else counted


def pytest(build, arguments):
    report = build / 'check-pytest.xml'
    report.unlink(missing_ok=True)
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE='1')
    env.setdefault('SPOTTER', str(build.resolve() / 'spotter'))
    print('end-to-end tests', flush=True)
    status = subprocess.run([sys.executable, '-m', 'pytest', '-q', '-ra', '--durations=5',
                             '-p', 'no:cacheprovider', f'--junitxml={report}', *arguments],
                            cwd=ROOT, env=env, stdin=subprocess.DEVNULL).returncode
    if not report.exists():
        return 0, 1, 0
    total = failed = skipped = 0
    for suite in ElementTree.parse(report).iter('testsuite'):
        total += int(suite.get('tests'))
        failed += int(suite.get('failures')) + int(suite.get('errors'))
        skipped += int(suite.get('skipped'))
    if status not in (0, 5) and not failed:
        failed = 1
    return max(total - failed - skipped, 0), failed, skipped


def main():
    arguments = sys.argv[1:]
    only = arguments.pop(0) if arguments[0].startswith('--') else ''
    build = Path(arguments[0])
    counts = (0, 0, 0)
    if only != '--pytest-only':
        counts = add(counts, unit_tests(build))
    if only != '--unit-only':
        counts = add(counts, pytest(build, arguments[1:] or ['tests']))
    print('%d passed, %d failed, %d skipped' % counts)
    sys.exit(bool(counts[1]) or not any(counts))


if __name__ == '__main__':
    main()
