"""`spotter run` passes everything through: status, signals, terminal, input and output."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest


def run(spotter, cwd, *args, **kwargs):
    return subprocess.run([spotter, 'run', *args], cwd=cwd, capture_output=True, check=False,
                          timeout=60, **kwargs)


def report_of(spotter, path):
    out = subprocess.run([spotter, 'report', '--json', str(path)], capture_output=True, check=True)
    return json.loads(out.stdout)


def wait_for(what, seconds=10):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError('waited in vain')


@pytest.mark.parametrize('code', [0, 1, 7, 255])
def test_exit_status_is_the_commands(spotter, tmp_path, code):
    done = run(spotter, tmp_path, '--', 'sh', '-c', f'exit {code}')
    assert done.returncode == code
    assert report_of(spotter, tmp_path / 'run.spot')['run']['exit_code'] == code


@pytest.mark.parametrize('sig', [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_command_killed_by_a_signal(spotter, tmp_path, sig):
    done = run(spotter, tmp_path, '--', 'sh', '-c', f'kill -{int(sig)} $$')
    assert done.returncode == -sig
    said = report_of(spotter, tmp_path / 'run.spot')['run']
    assert said['signal'] == sig
    assert said['exit_code'] is None
    assert not list(tmp_path.glob('core*'))


def test_output_and_input_are_untouched(spotter, tmp_path):
    data = os.urandom(300_000)
    done = run(spotter, tmp_path, '-q', '--', 'cat', input=data)
    assert done.stdout == data
    assert done.stderr == b''


def test_the_report_goes_to_standard_error_only(spotter, tmp_path):
    done = run(spotter, tmp_path, '--', 'echo', 'hello')
    assert done.stdout == b'hello\n'
    assert b'echo hello' in done.stderr
    assert b'\x1b' not in done.stderr


def test_arguments_arrive_as_they_are(spotter, tmp_path):
    words = ['a b', '', '--help', '-o', 'x"y', "it's", 'ü\n']
    done = run(spotter, tmp_path, '-q', '--', sys.executable, '-c',
               'import sys, json; print(json.dumps(sys.argv[1:]))', *words)
    assert json.loads(done.stdout) == words
    assert report_of(spotter, tmp_path / 'run.spot')['run']['command'] is not None


def test_without_the_double_dash(spotter, tmp_path):
    done = run(spotter, tmp_path, 'sh', '-c', 'echo "$0" -q', 'x')
    assert done.stdout == b'x -q\n'


def test_environment_is_the_jobs_own(spotter, tmp_path):
    plain = subprocess.run(['env', '-0'], capture_output=True, check=True, cwd=tmp_path).stdout
    under = run(spotter, tmp_path, '-q', '--', 'env', '-0').stdout
    names = {'SPOTTER_DIR', 'PYTHONPATH'}

    def keep(text):
        pairs = dict(e.split('=', 1) for e in text.decode().split('\0') if e)
        return {k: v for k, v in pairs.items() if k not in names and k != '_'}
    assert keep(under) == keep(plain)


def test_pythonpath_is_kept_behind_ours(spotter, tmp_path):
    env = dict(os.environ, PYTHONPATH='/some/where:/else')
    done = run(spotter, tmp_path, '-q', '--', 'sh', '-c', 'echo "$PYTHONPATH"', env=env)
    ours, *rest = done.stdout.decode().strip().split(':')
    assert rest == ['/some/where', '/else']
    assert ours.endswith('/python')
    assert not os.path.exists(ours), 'the directory of the run is gone afterwards'


def test_signal_mask_and_dispositions_are_the_jobs_own(spotter, tmp_path):
    script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"
    plain = subprocess.run(['sh', '-c', script], capture_output=True, check=True).stdout
    assert run(spotter, tmp_path, '-q', '--', 'sh', '-c', script).stdout == plain


def test_descriptors_do_not_leak_into_the_job(spotter, tmp_path):
    done = run(spotter, tmp_path, '-q', '--', 'sh', '-c', 'ls /proc/self/fd | wc -l')
    plain = subprocess.run(['sh', '-c', 'ls /proc/self/fd | wc -l'], capture_output=True, check=True,
                           stdin=subprocess.DEVNULL)
    assert int(done.stdout) == int(plain.stdout)


@pytest.mark.parametrize('sig', [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_sent_to_spotter_reaches_the_job_once(spotter, tmp_path, sig):
    script = ('import signal, sys, time\n'
              'got = []\n'
              f'signal.signal({int(sig)}, lambda s, f: got.append(s))\n'
              'print("ready", flush=True)\n'
              'end = time.monotonic() + 20\n'
              'while not got and time.monotonic() < end: time.sleep(0.01)\n'
              'time.sleep(0.3)\n'
              'print(len(got), flush=True)\n'
              'sys.exit(40 + len(got))\n')
    job = subprocess.Popen([spotter, 'run', '-q', '--', sys.executable, '-c', script], cwd=tmp_path,
                           stdout=subprocess.PIPE)
    assert job.stdout.readline() == b'ready\n'
    job.send_signal(sig)
    assert job.stdout.read() == b'1\n'
    assert job.wait(10) == 41
    job.stdout.close()


def in_terminal(argv, cwd):
    """Start argv as a shell would: leader of its session, with a terminal of 100 by 30. (pid, descriptor)."""
    pid, fd = pty.fork()
    if not pid:
        os.chdir(cwd)
        os.execvp(argv[0], argv)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 30, 100, 0, 0))
    return pid, fd


def read_until(fd, pattern, seconds=15):
    text = b''
    deadline = time.monotonic() + seconds
    while not re.search(pattern, text):
        left = deadline - time.monotonic()
        assert left > 0, text
        if select.select([fd], [], [], left)[0]:
            try:
                piece = os.read(fd, 65536)
            except OSError:
                break
            text += piece
    return text


def test_the_job_keeps_the_terminal(spotter, tmp_path):
    pid, fd = in_terminal([spotter, 'run', '-q', '--', 'sh', '-c', 'tty; stty size; test -t 0 -a -t 1 -a -t 2'],
                          tmp_path)
    text = read_until(fd, rb'\d+ \d+\r\n')
    assert b'/dev/pts/' in text
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(fd)


def test_control_c_ends_the_job_and_the_report_still_comes(spotter, tmp_path):
    pid, fd = in_terminal([spotter, 'run', '--', 'sh', '-c', 'echo ready; exec sleep 60'], tmp_path)
    read_until(fd, b'ready')
    os.write(fd, b'\x03')
    text = read_until(fd, b'recorded|spotter  ')
    assert b'sleep 60' in text or b'sh -c' in text
    while True:
        try:
            if not os.read(fd, 65536):
                break
        except OSError:
            break
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGINT
    os.close(fd)


def state_of(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii') as f:
        return f.read().rpartition(')')[2].split()[0]


def test_control_z_stops_both_and_cont_resumes(spotter, tmp_path):
    # What a shell does: a process group of its own in the foreground, and a look at how it stopped.
    shell = ('import os, signal, subprocess, sys\n'
             'signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n'
             'p = subprocess.Popen(sys.argv[1:], preexec_fn=lambda: (os.setpgid(0, 0), '
             'os.tcsetpgrp(0, os.getpid()), signal.signal(signal.SIGTTOU, signal.SIG_DFL)))\n'
             '_, status = os.waitpid(p.pid, os.WUNTRACED)\n'
             'print("stopped", os.WIFSTOPPED(status), flush=True)\n'
             'os.killpg(p.pid, signal.SIGCONT)\n'
             'print("exit", p.wait(), flush=True)\n')
    # One process: a shell that is just starting another one by vfork cannot be stopped.
    job = 'import sys, time; print("ready", flush=True); time.sleep(0.4); print("over"); sys.exit(5)'
    pid, fd = in_terminal([sys.executable, '-c', shell, spotter, 'run', '-q', '--', sys.executable, '-c',
                           job], tmp_path)
    read_until(fd, b'ready')
    os.write(fd, b'\x1a')
    text = read_until(fd, rb'exit \d+')
    assert b'stopped True' in text
    assert b'over' in text
    assert b'exit 5' in text
    os.waitpid(pid, 0)
    os.close(fd)


def test_sigtstp_to_spotter_stops_the_job(spotter, tmp_path):
    job = subprocess.Popen([spotter, 'run', '-q', '--', 'sleep', '1'], cwd=tmp_path,
                           start_new_session=True)
    child = int(wait_for(lambda: subprocess.run(['pgrep', '-P', str(job.pid), '-x', 'sleep'],
                                                capture_output=True, check=False).stdout))
    os.kill(child, signal.SIGSTOP)
    wait_for(lambda: state_of(job.pid) == 'T')
    os.kill(job.pid, signal.SIGCONT)
    wait_for(lambda: state_of(child) != 'T')
    assert job.wait(10) == 0


def test_an_old_recording_is_kept(spotter, tmp_path):
    run(spotter, tmp_path, '-q', '--', 'sh', '-c', 'exit 3')
    run(spotter, tmp_path, '-q', '--', 'sh', '-c', 'exit 4')
    assert report_of(spotter, tmp_path / 'run.spot')['run']['exit_code'] == 4
    assert report_of(spotter, tmp_path / 'run.spot.old')['run']['exit_code'] == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ['run.spot', 'run.spot.old']


def test_two_runs_in_one_directory(spotter, tmp_path):
    first = subprocess.Popen([spotter, 'run', '-q', '--', 'sleep', '1.5'], cwd=tmp_path)
    wait_for((tmp_path / 'run.spot').exists)
    time.sleep(0.3)
    assert run(spotter, tmp_path, '-q', '--', 'true').returncode == 0
    assert first.wait(10) == 0
    assert report_of(spotter, tmp_path / 'run.2.spot')['run']['command'] == 'true'
    assert report_of(spotter, tmp_path / 'run.spot')['run']['command'] == 'sleep 1.5'


def test_a_second_run_on_the_same_name_leaves_the_first_alone(spotter, tmp_path):
    first = subprocess.Popen([spotter, 'run', '-q', '-o', 'x.spot', '--', 'sleep', '1.5'], cwd=tmp_path)
    wait_for((tmp_path / 'x.spot').exists)
    time.sleep(0.3)
    done = run(spotter, tmp_path, '-o', 'x.spot', '--', 'sh', '-c', 'echo out; exit 6')
    assert done.returncode == 6
    assert done.stdout == b'out\n'
    assert b'x.spot' in done.stderr and b'the job goes on' in done.stderr
    assert first.wait(10) == 0
    assert report_of(spotter, tmp_path / 'x.spot')['run']['command'] == 'sleep 1.5'


def test_wait_all_stays_with_what_the_command_left(spotter, tmp_path):
    began = time.monotonic()
    done = run(spotter, tmp_path, '--wait-all', '-q', '--', 'sh', '-c',
               '(sleep 0.7; echo late) >left 2>&1 & exit 2')
    assert done.returncode == 2
    assert time.monotonic() - began > 0.6
    assert (tmp_path / 'left').read_text() == 'late\n'


def test_a_job_that_forks_and_exits(spotter, tmp_path):
    done = run(spotter, tmp_path, '-q', '--', 'sh', '-c', 'sleep 0.4 >/dev/null 2>&1 & exit 9')
    assert done.returncode == 9
    assert report_of(spotter, tmp_path / 'run.spot')['run']['exit_code'] == 9


def test_steps_from_output(spotter, tmp_path):
    script = 'for i in 1 2 3 4 5 6 7 8 9 10; do echo "step $i loss 0.$i"; sleep 0.05; done; echo bye >&2'
    done = run(spotter, tmp_path, '--steps-from', 'step ([0-9]+)', '-q', '--', 'sh', '-c', script)
    assert done.stdout == b''.join(b'step %d loss 0.%d\n' % (i, i) for i in range(1, 11))
    assert done.stderr == b'bye\n'
    steps = report_of(spotter, tmp_path / 'run.spot')['steps']
    assert steps['count'] in (9, 10)
    assert 45 < steps['p50_ms'] < 90


def test_usage_errors(spotter, tmp_path):
    for args, word in (([], b'which command'), (['--interval', '1us', 'true'], b'1ms'),
                       (['--interval', 'x', 'true'], b'time'), (['--journal', 'x', 'true'], b'wal'),
                       (['--task-reader', 'x', 'true'], b'bpf'),
                       (['--steps-from', '(', '--', 'touch', 'ran'], b'(')):
        done = run(spotter, tmp_path, *args)
        assert done.returncode == 2, args
        assert word in done.stderr
    assert list(tmp_path.iterdir()) == []
