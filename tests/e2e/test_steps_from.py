"""--steps-from: the job's output arrives byte for byte, and its lines become steps."""
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest


class Runner:
    """Runs Python code under `spotter run --steps-from REGEX`."""

    def __init__(self, spotter, folder):
        self.spotter, self.cwd, self.recording = spotter, folder, folder / 'out.spot'

    def command(self, regex, code):
        return [self.spotter, 'run', '-q', '-o', str(self.recording), '--steps-from', regex, '--',
                sys.executable, '-c', code]

    def run(self, regex, code, **kwargs):
        kwargs.setdefault('stdout', subprocess.PIPE)
        kwargs.setdefault('stderr', subprocess.PIPE)
        return subprocess.run(self.command(regex, code), cwd=self.cwd, check=False, timeout=60, **kwargs)

    def steps(self):
        out = subprocess.run([self.spotter, 'export', '--to', 'jsonl', str(self.recording)], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        rows = [json.loads(line) for line in out.splitlines()]
        return [r for r in rows if r['type'] == 'event' and r['track'] == 'step']

    def indices(self):
        return [s['args']['step'] for s in self.steps()]


@pytest.fixture
def runner(spotter, tmp_path):
    return Runner(spotter, tmp_path)


def test_lines_become_steps(runner):
    done = runner.run('step ([0-9]+)', '''
import sys, time
print("loading")
for i in range(5):
    print(f"step {i * 10} loss 0.5", flush=True); time.sleep(.02)
print("step 99 on stderr", file=sys.stderr)
sys.exit(7)
''')
    assert done.returncode == 7
    assert done.stdout == b'loading\n' + b''.join(b'step %d loss 0.5\n' % (i * 10) for i in range(5))
    assert done.stderr == b'step 99 on stderr\n'
    assert sorted(runner.indices()) == [0, 10, 20, 30, 40, 99]
    durations = [s['dur_ns'] for s in runner.steps()]
    assert durations.count(0) == 2 and max(durations) >= 20e6  # each output's first has no begin


@pytest.mark.parametrize('regex, expected', [
    ('^it', [0, 1, 2]), ('^it (x)', [0, 1, 2]), ('it x ([0-9.]+)', [0, 1, 2]), ('nothing', [])])
def test_without_a_number_steps_are_counted(runner, regex, expected):
    runner.run(regex, 'for i in range(3): print("it x 0.5")')
    assert runner.indices() == expected


def test_progress_bars_and_an_unfinished_line(runner):
    done = runner.run('([0-9]+)/', r'''
import sys
for i in range(4):
    sys.stdout.write(f"\r{i}/4"); sys.stdout.flush()
sys.stdout.write("\r\n7/ last")
''')
    assert done.stdout == b'\r0/4\r1/4\r2/4\r3/4\r\n7/ last'
    assert runner.indices() == [0, 1, 2, 3, 7]


NASTY = r'''
import os, random
random.seed(5)
def put(b):
    while b:
        b = b[os.write(1, b):]
put(bytes(range(256)) * 50)
put(b"x" * 300000 + b" step 5\n")
put(b"step 1\0 step 2\n\n\n\xff\xfe step 3\r\n")
for i in range(400):
    put(random.randbytes(random.randrange(20000)))
put(b"\nstep 77")
'''


def test_any_bytes_come_through(runner, tmp_path):
    plain = subprocess.run([sys.executable, '-c', NASTY], check=True, stdout=subprocess.PIPE).stdout
    assert runner.run(r'step ([0-9]+)', NASTY).stdout == plain
    assert runner.indices()[0] == 1 and runner.indices()[-1] == 77
    with open(tmp_path / 'file', 'wb') as f:
        os.remove(runner.recording)
        runner.run('step', NASTY, stdout=f)
    assert (tmp_path / 'file').read_bytes() == plain


def test_one_place_keeps_its_order(runner):
    done = runner.run('x', '''
import os
for i in range(2000): os.write(1 + i % 2, b"%d\\n" % i)
''', stderr=subprocess.STDOUT)
    assert done.stdout == b''.join(b'%d\n' % i for i in range(2000))


def test_output_is_passed_on_at_once(runner):
    with subprocess.Popen(runner.command('step', 'import time\nprint("step", flush=True)\ninput()'),
                          cwd=runner.cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.read(5) == b'step\n'  # while the job waits
        process.stdin.write(b'\n')
        process.stdin.close()
        assert process.wait() == 0


def test_the_reader_goes_away(runner):
    """As without spotter: SIGPIPE ends the job."""
    code = 'import signal, os\nsignal.signal(13, signal.SIG_DFL)\nwhile True: os.write(1, b"y\\n" * 1000)'
    with subprocess.Popen(runner.command('y', code), cwd=runner.cwd, stdout=subprocess.PIPE) as process:
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait() in (-signal.SIGPIPE, 128 + signal.SIGPIPE)


def test_closed_and_null_outputs(runner):
    done = subprocess.run(['sh', '-c', '"$@" >&- 2>/dev/null', 'sh', *runner.command(
        'x', 'import os\ntry: os.fstat(1)\nexcept OSError: os._exit(9)')], cwd=runner.cwd, check=False)
    assert done.returncode == 9


def test_a_slow_reader_holds_the_job_back_and_loses_nothing(runner):
    code = 'import os\nfor i in range(200): os.write(1, (b"step %d\\n" % i) * 500)'
    with subprocess.Popen(runner.command('step ([0-9]+)', code), cwd=runner.cwd,
                          stdout=subprocess.PIPE) as process:
        out = b''
        while chunk := process.stdout.read(40000):
            out += chunk
            time.sleep(.005)
        assert process.wait() == 0
    assert out == b''.join(b'step %d\n' % i * 500 for i in range(200))


def test_the_output_outlives_the_recorder(runner):
    code = '''
import os, time
print(os.getppid(), flush=True)
input()
print("step 1 still here", flush=True)
'''
    with subprocess.Popen(runner.command('step', code), cwd=runner.cwd, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert int(process.stdout.readline()) == process.pid
        process.kill()
        process.wait()
        process.stdin.write(b'\n')
        process.stdin.close()
        assert process.stdout.read() == b'step 1 still here\n'


def test_what_the_job_leaves_running_keeps_its_output(runner):
    code = '''
import os, time
if not os.fork():
    time.sleep(.5); print("step 2 late", flush=True); os._exit(0)
print("step 1", flush=True)
'''
    with subprocess.Popen(runner.command('step', code), cwd=runner.cwd, stdout=subprocess.PIPE) as process:
        assert process.stdout.read() == b'step 1\nstep 2 late\n'
        assert process.wait() == 0


def test_no_regular_expression(runner):
    done = runner.run('step (', 'print(1)')
    assert done.returncode not in (0, 1) and done.stdout == b''
    assert b"'step ('" in done.stderr and b'regular expression' in done.stderr
    assert not runner.recording.exists()


def in_terminal(command, cwd, rows, columns, during=None):
    """Run a command on a terminal of its own; what it showed and its status."""
    pid, master = pty.fork()
    if not pid:
        os.chdir(cwd)
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
        os.execv(command[0], command)
    shown = bytearray()

    def read():
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:
                return
            if not chunk:
                return
            shown.extend(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    if during:
        during(master, shown)
    status = os.waitpid(pid, 0)[1]
    reader.join()
    os.close(master)
    return bytes(shown), os.waitstatus_to_exitcode(status)


def wait_for(shown, text):
    deadline = time.monotonic() + 30
    while text not in shown:
        assert time.monotonic() < deadline, bytes(shown)
        time.sleep(.01)


def test_a_terminal_stays_one(runner):
    code = '''
import os, sys, time
print([os.isatty(i) for i in range(3)], os.get_terminal_size(1), flush=True)
print("step 1\\tend", flush=True)
before = tuple(os.get_terminal_size(1))
deadline = time.monotonic() + 20
input()
while tuple(os.get_terminal_size(1)) == before and time.monotonic() < deadline:
    time.sleep(.01)
print("now", tuple(os.get_terminal_size(1)), file=sys.stderr)
'''

    def resize(master, shown):
        wait_for(shown, b'end')
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', 30, 99, 0, 0))
        os.write(master, b'\n')

    shown, status = in_terminal(runner.command('step ([0-9]+)', code), runner.cwd, 33, 77, resize)
    assert status == 0
    assert shown.startswith(b'[True, True, True] os.terminal_size(columns=77, lines=33)\r\nstep 1\tend\r\n')
    assert b'now (99, 30)\r\n' in shown
    assert runner.indices() == [1]


def test_control_c_reaches_the_job_and_its_last_words_the_terminal(runner):
    code = '''
import time
try:
    print("ready", flush=True); time.sleep(60)
except KeyboardInterrupt:
    print("step 5", flush=True); raise SystemExit(3)
'''

    def interrupt(master, shown):
        wait_for(shown, b'ready')
        os.write(master, b'\3')

    shown, status = in_terminal(runner.command('step ([0-9]+)', code), runner.cwd, 24, 80, interrupt)
    assert status == 3 and b'step 5\r\n' in shown and runner.indices() == [5]
