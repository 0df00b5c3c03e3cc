# SPDX-License-Identifier: Apache-2.0
"""Marks: tell spotter what a training program does. One file, no dependency; copy it beside the program.

    import spotter_mark as mark

    for epoch in range(epochs):
        mark.epoch(epoch)                      # an epoch begins
        for i in range(steps):
            mark.input_begin()
            x, y = next_batch()
            mark.input_end()
            train(x, y)
            mark.step(batch=64)                # a step ends
        with mark.checkpoint():
            save()
    mark.epoch_end()

Under `spotter run` each call writes one record of 64 bytes into a ring in shared memory; elsewhere every
function is an empty one. Nothing here prints, blocks, or raises. The C twin is include/spotter/mark.h; the
layout of a ring is inject/wire.h. Python 3.7 or newer on Linux.
"""
import os
import struct
import threading
import time

NONE = -(1 << 63)  # an argument without a value
STEP, EPOCH, CHECKPOINT, GC, RANGE, MARK = 1, 2, 3, 4, 5, 6
STRING, FACT, NOTICE = 100, 101, 102

_MAGIC = 0x474E495254505331
_HEADER, _RECORD, _CAPACITY, _TEXT, _MORE = 4096, 64, 4096, 40, 0x8000
_MASK = _CAPACITY - 1
_MAX = (1 << 63) - 1
_now = time.monotonic_ns
_count = range  # the name is taken below


def ours(error, folder=os.path.dirname(os.path.abspath(__file__))):
    """Was this raised by a file of this folder? Else it is of the job: of a signal handler that ran while our
    code did. That one must not be swallowed."""
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    return tb is not None and os.path.dirname(os.path.abspath(tb.tb_frame.f_code.co_filename)) == folder


def _map(fd, size):
    """Map a file shared, without keeping a descriptor in the job (the mmap module would)."""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                          ctypes.c_int, ctypes.c_long]
    # PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE: no page fault later, in the middle of a step
    address = libc.mmap(None, size, 3, 0x8001, fd, 0)
    if address is None or address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), 'mmap')
    return memoryview((ctypes.c_ubyte * size).from_address(address)).cast('B')


def _create(directory, pid, tid):
    """A new ring file of its full size; its descriptor and path."""
    for n in _count(1000):
        path = '%s/%d.%d.%d.ring' % (directory, pid, tid, n)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            continue
        return fd, path
    raise OSError('too many rings')


class Ring:
    """One ring: put() writes a record, text() a string, fact or notice.

    One thread at a time. Both may be entered again from a signal handler or the garbage collector while they
    run; what comes then is written when the outer call ends.
    """

    def __init__(self, directory, source, tid):
        pid = os.getpid()
        fd, path = _create(directory, pid, tid)
        try:
            size = _HEADER + _CAPACITY * _RECORD
            # All pages now: a write into a hole of a full tmpfs would kill the job with SIGBUS.
            os.posix_fallocate(fd, 0, size)
            view = _map(fd, size)
        except BaseException:
            os.unlink(path)
            raise
        finally:
            os.close(fd)
        try:
            pid_ns = os.stat('/proc/self/ns/pid').st_ino
        except OSError:
            pid_ns = 0
        struct.pack_into('@IIIIIIQQ', view, 8, 1, _HEADER, _RECORD, _CAPACITY, pid, tid, _now(), pid_ns)
        self.head = view[:_HEADER].cast('Q')
        self.put, self.text = _writer(view, self.head)
        self.head[0] = _MAGIC
        self.text(FACT, 'hook=' + source)

    def cost(self, ns):
        """What the producer estimates to have cost the job so far."""
        self.head[10] = ns


def _writer(view, words):
    """The two functions of a ring, as closures: the fastest Python there is."""
    pack = struct.Struct('@QQHHIqqqqq').pack_into
    pack_text = struct.Struct('@QQHHI40s').pack_into
    head = 0
    limit = _CAPACITY  # head may grow up to here before the tail must be looked at
    busy = False
    later = []

    def room(n):
        nonlocal limit
        tail = words[16]
        if tail <= head:
            limit = tail + _CAPACITY
        if head + n <= limit:
            return True
        words[9] += n
        return False

    def put(kind, t, dur, a, b=NONE, c=NONE, d=NONE, e=NONE):
        nonlocal head, busy
        if busy:
            if len(later) < 64:
                later.append((put, kind, t, dur, a, b, c, d, e))
            else:
                words[9] += 1
            return
        busy = True
        try:
            if head < limit or room(1):
                pack(view, _HEADER + (head & _MASK) * _RECORD, t, dur, kind, 0, 0, a, b, c, d, e)
                head += 1
                words[8] = head
        finally:
            busy = False
        if later:
            flush()

    def text(kind, string, aux=0):
        nonlocal head, busy
        if busy:
            if len(later) < 64:
                later.append((text, kind, string, aux))
            return
        busy = True
        try:
            data = string.encode('utf-8', 'replace')[:4000]
            pieces = [data[i:i + _TEXT] for i in _count(0, len(data), _TEXT)] or [b'']
            if room(len(pieces)):
                t = _now()
                for i, piece in enumerate(pieces):
                    more = _MORE if i + 1 < len(pieces) else 0
                    pack_text(view, _HEADER + ((head + i) & _MASK) * _RECORD, t, 0, kind,
                              len(piece) | more, aux, piece)
                head += len(pieces)
                words[8] = head
        finally:
            busy = False
        if later:
            flush()

    def flush():
        while later:
            call = later.pop(0)
            call[0](*call[1:])

    return put, text


class _Slot:
    """Gives a ring back when its thread ends, for the next thread."""

    def __init__(self, ring, pool):
        self.ring, self.pool = ring, pool

    def __del__(self):
        try:
            self.pool.append(self.ring)
        except Exception:
            pass


class Rings:
    """The rings of this process for one source: the calling thread's is made at its first use."""

    def __init__(self, directory, source):
        self.directory, self.source = directory, source
        self.forget()

    def forget(self):
        """After a fork: the rings are the parent's."""
        self.local = threading.local()
        self.pool = []
        self.failures = 0

    def get(self):
        """The calling thread's Ring; None if none can be had."""
        try:
            return self.local.slot.ring
        except AttributeError:
            return self._make()

    def _make(self):
        if self.failures > 2:
            return None
        try:
            main = threading.current_thread() is threading.main_thread()
            if main:
                ring = Ring(self.directory, self.source, os.getpid())
            else:
                # tid 0: handed on from thread to thread, so that short threads do not leave one each
                ring = self.pool.pop() if self.pool else Ring(self.directory, self.source, 0)
        except Exception as e:
            self.failures += 1
            if not ours(e) and not isinstance(e, ImportError):
                raise
            return None
        self.local.slot = _Slot(ring, self.pool)
        return ring


def _number(value):
    """A batch size, index or value as the wire has it."""
    try:
        value = NONE if value is None else int(value)
    except Exception:
        return NONE
    return value if -_MAX <= value <= _MAX else NONE


class _Thread(threading.local):
    """What a thread has begun and not yet ended."""
    begin = 0  # of the running step; 0: not known
    index = eval_index = 0
    wait = NONE
    input_t = 0
    checkpoint_t = 0
    epoch = NONE
    epoch_t = 0
    epochs = 0

    def __init__(self):
        self.ranges = []
        self.ids = {}
        self.ring = None


class _Marks:
    """The functions of this module, where there is a recorder."""

    def __init__(self, directory):
        self.rings = Rings(directory, 'marks')
        self.thread = _Thread()
        if hasattr(os, 'register_at_fork'):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self):
        self.rings.forget()
        self.thread = _Thread()

    def _put(self, kind, t, dur, *args):
        s = self.thread
        ring = s.ring
        if ring is None:
            ring = s.ring = self.rings.get()
            if ring is None:
                return
        ring.put(kind, t, dur, *args)

    def _id(self, name):
        s = self.thread
        n = s.ids.get(name)
        if n is None:
            n = s.ids[name] = len(s.ids) + 1
            if n > 60000:  # names made up on the go: keep what is known, forget the rest
                s.ids.clear()
                n = s.ids[name] = 1
            ring = self.rings.get()
            if ring is not None:
                ring.text(STRING, str(name), n)
        return n

    def _step(self, phase, batch):
        s, t = self.thread, _now()
        index = s.eval_index if phase else s.index
        self._put(STEP, s.begin or t, t - s.begin if s.begin else 0, index, phase, s.epoch,
                  _number(batch), s.wait)
        if phase:
            s.eval_index += 1
        else:
            s.index += 1
        s.begin = t
        if s.wait != NONE:
            s.wait = 0

    def step(self, batch=None):
        self._step(0, batch)

    def eval_step(self, batch=None):
        self._step(1, batch)

    def input_begin(self):
        s = self.thread
        s.input_t = _now()
        s.begin = s.begin or s.input_t

    def input_end(self):
        s = self.thread
        if s.input_t:
            s.wait = (0 if s.wait == NONE else s.wait) + _now() - s.input_t
            s.input_t = 0

    def epoch(self, index=None):
        self.epoch_end()
        s = self.thread
        s.epoch = s.epochs if index is None else _number(index)
        s.epochs += 1
        s.epoch_t = s.begin = _now()

    def epoch_end(self):
        s = self.thread
        if s.epoch_t:
            self._put(EPOCH, s.epoch_t, _now() - s.epoch_t, s.epoch, 0)
        s.epoch_t, s.begin = 0, 0

    def range_push(self, name):
        self.thread.ranges.append((name, _now()))

    def range_pop(self):
        ranges = self.thread.ranges
        if ranges:
            name, t = ranges.pop()
            self._put(RANGE, t, _now() - t, self._id(name), len(ranges))

    def mark(self, name, value=None):
        self._put(MARK, _now(), 0, self._id(name), _number(value))

    def checkpoint_begin(self):
        self.thread.checkpoint_t = _now()

    def checkpoint_end(self, nbytes=None):
        s = self.thread
        if s.checkpoint_t:
            self._put(CHECKPOINT, s.checkpoint_t, _now() - s.checkpoint_t, _number(nbytes))
            s.checkpoint_t = 0


def _guarded(function):
    """What a mark was given may be anything; the job must never hear of it."""
    def call(*args, **kwargs):
        try:
            function(*args, **kwargs)
        except Exception as e:
            if not ours(e):
                raise
    call.__name__ = call.__qualname__ = function.__name__
    return call


def _nothing(*args, **kwargs):
    pass


_NAMES = ('step', 'eval_step', 'input_begin', 'input_end', 'epoch', 'epoch_end', 'range_push',
          'range_pop', 'mark', 'checkpoint_begin', 'checkpoint_end')


def _start():
    directory = os.environ.get('SPOTTER_DIR', '')
    if directory.startswith('/') and os.path.isdir(directory):
        marks = _Marks(directory)
        return {name: _guarded(getattr(marks, name)) for name in _NAMES}
    return dict.fromkeys(_NAMES, _nothing)


_functions = _start()
enabled = _functions['step'] is not _nothing  # is a recorder listening?
step = _functions['step']  # step(batch=None): a training step ends here
eval_step = _functions['eval_step']  # eval_step(batch=None): an evaluation step ends here
input_begin = _functions['input_begin']  # waiting for the next batch begins
input_end = _functions['input_end']  # and ends
epoch = _functions['epoch']  # epoch(index=None): an epoch begins (the one before ends)
epoch_end = _functions['epoch_end']  # the last epoch ends
range_push = _functions['range_push']  # range_push(name): a named range begins; ranges nest
range_pop = _functions['range_pop']  # the innermost range ends
mark = _functions['mark']  # mark(name, value=None): a named instant with a whole number
checkpoint_begin = _functions['checkpoint_begin']
checkpoint_end = _functions['checkpoint_end']  # checkpoint_end(nbytes=None)


class range:  # noqa: A001 - spotter_mark.range("forward") reads as it should
    """with spotter_mark.range("forward"): ..."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        range_push(self.name)
        return self

    def __exit__(self, *exc):
        range_pop()


class waiting:
    """with spotter_mark.waiting(): batch = next(it)"""

    def __enter__(self):
        input_begin()
        return self

    def __exit__(self, *exc):
        input_end()


class checkpoint:
    """with spotter_mark.checkpoint(): save(); set .nbytes inside if the size is known."""
    nbytes = None

    def __enter__(self):
        checkpoint_begin()
        return self

    def __exit__(self, *exc):
        checkpoint_end(self.nbytes)
