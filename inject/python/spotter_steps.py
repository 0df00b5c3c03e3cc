# SPDX-License-Identifier: Apache-2.0
"""What is a step? The part of the step hook that decides, without knowing PyTorch.

It is told when an iteration over a data loader begins, when a batch was fetched, when an iteration ended and
when an optimizer stepped, and writes steps, epochs and collector pauses into the ring (inject/wire.h).

A training step ends when the optimizer has stepped. It begins where the step before it ended, or, after an
evaluation and at the start of an epoch, where the iteration over the loader began. Batches fetched on the way
(gradient accumulation) are summed. Of several optimizers (GANs), the first to step after a batch was fetched
ends the step, and the others do not count until the next batch; the same optimizer stepping again does.

An evaluation step reaches from one fetch to the next. A batch belongs to evaluation when it is fetched while
gradients are off, or when a whole iteration (or 64 batches) went by without an optimizer step. What
looked like evaluation becomes training as soon as an optimizer steps after a fetch from it.

All state is the process's: one training loop per process. It is written under the interpreter's lock; the
rings are the calling thread's.
"""
import _thread
import time
import weakref

NONE = -(1 << 63)
STEP, EPOCH, CHECKPOINT, GC = 1, 2, 3, 4
HOLD = 64  # batches without an optimizer step before they are taken for evaluation
SLOW_NS = 10_000_000  # an iterator not used for so long after it was made: the time was not spent waiting
UNSEEN_NS = 400  # of each of the two hooks of a step, before and after its own clocks (bench/hook.py)
PAUSE_NS = 100_000  # collector pauses from here on get a record of their own
PAUSES_NS = 1_000_000  # shorter ones are written together when they reach this sum

_now = time.monotonic_ns
_ident = _thread.get_ident


class Pass:
    """One iteration over a loader."""
    __slots__ = ('loader', 'about', 'begin', 'made', 'first', 'training', 'known', 'grad', 'evaluating', 'pending',
                 'hold', 'number', 'done', 'companion', 'measure')

    def __init__(self, loader, about, begin, made, known):
        self.loader = loader  # weak reference: it may live no longer than it takes to make the iterator
        self.about = about  # what there is to say about it, for decided()
        self.begin = begin  # when the loader was asked for an iterator,
        self.made = made  # and when it was there (workers started)
        self.known = known  # an earlier iteration over this loader was training
        self.first = True  # nothing fetched yet
        self.training = False  # an optimizer stepped
        self.grad = True  # gradients were on at the last fetch
        self.evaluating = False
        self.pending = None  # evaluation: the batch in flight (begin, wait, batch)
        self.hold = [] if not known else None  # undecided: the batches so far
        self.number = NONE  # of the epoch or evaluation
        self.done = False
        self.companion = False  # fetched from along with another one (zip): not an epoch of its own
        self.measure = None  # how to get the batch size


class Steps:
    """The state machine. ring() gives the calling thread's Ring or None; decided(pass, training) is called
    when the kind of an iteration is known, stepped(optimizer) when another one stepped than before."""

    def __init__(self, ring, decided, stepped):
        self.ring, self.decided, self.stepped = ring, decided, stepped
        self.trained = weakref.WeakSet()  # loaders that were trained from
        self.reset()

    def reset(self):
        self.index = self.eval_index = 0
        self.epoch, self.evals = -1, 0  # the last ones begun
        self.begin = 0  # of the running step; 0: not known
        self.wait = 0
        self.batch = 0
        self.fetched = False  # since the last step
        self.fetcher = 0  # thread that fetched
        self.optimizer = 0  # id of the one that ended the last step
        self.optimizer_ref = None
        self.rival = 0  # id of another one that stepped since (without a loader)
        self.current = None  # the Pass trained from
        self.open = None  # the Pass with an evaluation batch in flight
        self.pauses = []
        self.pause_begin = 0
        self.short_begin = self.short_ns = self.short_collected = 0
        self.cost = 0  # to the job, estimated
        self.rare = 0  # of that, what happens once: measured as it happens

    # ------------------------------------------------------------------------------------- training

    def step(self, optimizer):
        """An optimizer has stepped."""
        t = _now()
        rare = self.rare
        if self.open is not None:
            self._resolve(t)
        if id(optimizer) != self.optimizer and not self._adopt(optimizer):
            return
        p = self.current
        if p is None:
            epoch = wait = batch = NONE
        else:
            if not p.training and self.fetched:
                self._begin_training(p)
            epoch = p.number
            # In another thread: the loop itself may not have waited.
            wait = self.wait if not self.fetched or self.fetcher == _ident() else NONE
            batch = self.batch if self.fetched and self.batch > 0 else NONE
        begin = self.begin
        ring = self.ring()
        if ring is not None:
            if begin:
                ring.put(STEP, begin, t - begin, self.index, 0, epoch, batch, wait)
            else:
                ring.put(STEP, t, 0, self.index, 0, epoch, batch, wait)
            if self.pauses or self.short_ns > PAUSES_NS:
                self.write_pauses(ring)
        self.index += 1
        self.begin = t
        self.wait = self.batch = self.rival = 0
        self.fetched = False
        if not self.index & 15:
            self.account(16 * (_now() - t - self.rare + rare + UNSEEN_NS))

    def _adopt(self, optimizer):
        """Another optimizer than the last time: does it end this step?"""
        n = id(optimizer)
        fresh = self.optimizer_ref is None or self.optimizer_ref() is None
        if not self.fetched and not fresh and self.rival != n:
            self.rival = n  # the second of a pair; a new leader only if it steps again before the other
            return False
        if not self.fetched and not fresh and self.current is not None:
            return False
        self.optimizer, self.rival = n, 0
        try:
            self.optimizer_ref = weakref.ref(optimizer)
        except TypeError:
            self.optimizer_ref = lambda: True
        self.stepped(optimizer)
        return True

    def _begin_training(self, p):
        """The first optimizer step of this iteration."""
        p.training = True
        p.hold = None
        if not p.companion:
            self.epoch += 1
            p.number = self.epoch
        loader = p.loader()
        if loader is not None:
            try:
                self.trained.add(loader)
            except TypeError:
                pass
        self.decided(p, True)

    def _resolve(self, t):
        """An optimizer stepped while an evaluation batch was in flight."""
        if self.fetched:  # for an earlier training batch: the evaluation was broken off
            begin = self.begin
            self.fetching(None, t)
            self.begin = begin
        else:
            self._was_training(self.open)

    def _was_training(self, p):
        """What was taken for evaluation is training."""
        self.open = None
        pending, p.pending = p.pending, None
        p.evaluating = False
        p.known = True
        if self.current is not p:
            self._switch(p)
        if pending:
            self.begin = self.begin or pending[0]
            self.wait += pending[1]
            self.batch = max(pending[2], 0)
            self.fetched, self.fetcher = True, _ident()

    # -------------------------------------------------------------------------------------- fetching

    def fetching(self, p, t):
        """A batch is asked for: what was being evaluated ends here."""
        o = self.open
        if o is not None:
            self.open = None
            if o.pending:
                self._eval_step(o, t)
            if o is not p:  # broken off
                self._end_evaluation(o, t)

    def fetch(self, p, t0, t1, batch, grad):
        """A batch has come; batch is its size or -1."""
        begin, wait = t0, t1 - t0
        if p.first:
            p.first = False
            if t0 - p.made < SLOW_NS:
                begin, wait = p.begin, t1 - p.begin
            first = True
        else:
            first = False
        if not p.training:
            p.grad = grad
            if p.evaluating or not (grad or p.companion):
                if not p.evaluating:
                    p.begin = begin
                    self._begin_evaluation(p)
                p.pending = (begin, wait, batch)
                self.open = p
                return
        if self.current is not p:
            self._switch(p)
        if first and not self.fetched:
            self.begin = begin
            self.wait = self.batch = 0
        self.wait += wait
        if batch < 0 or self.batch < 0:
            self.batch = -1
        else:
            self.batch += batch
        self.fetched = True
        self.fetcher = _ident()
        if p.hold is not None:
            p.hold.append((begin, wait, batch))
            if len(p.hold) >= HOLD and not p.companion:
                self._not_training(p, t1)

    def _switch(self, p):
        """Training batches come from another iteration than before."""
        old = self.current
        if old is not None:
            if self.fetched and not old.done and not p.training:
                p.companion = True  # both are read for one step
                p.hold = None
                p.number = old.number
                return
            if old.hold and old.done:
                self._not_training(old, p.begin)
            if old.training and not old.done:
                self._end_epoch(old, self.begin or p.begin)
                old.done = True
        if not self.fetched or old is None or old.done:
            self.fetched = False  # what was left over of an accumulation is not coming any more
        self.current = p

    def end(self, p, t):
        """The iteration is exhausted."""
        p.done = True
        if p.evaluating:
            self._end_evaluation(p, t)
        elif p.training:
            self._end_epoch(p, t)
        elif p.known and not p.companion and not self.fetched:
            self.begin = t
        # else undecided: an optimizer step may still follow the last batch

    def _end_epoch(self, p, t):
        ring = self.ring()
        if ring is not None and p.number != NONE and not p.companion:
            ring.put(EPOCH, p.begin, max(t - p.begin, 0), p.number, 0)

    # ------------------------------------------------------------------------------------ evaluation

    def _begin_evaluation(self, p):
        p.evaluating = True
        p.number = self.evals
        self.evals += 1
        self.decided(p, False)

    def _eval_step(self, p, t):
        begin, wait, batch = p.pending
        p.pending = None
        ring = self.ring()
        if ring is not None:
            ring.put(STEP, begin, max(t - begin, 0), self.eval_index, 1, p.number,
                     batch if batch >= 0 else NONE, wait)
            if self.pauses:
                self.write_pauses(ring)
        self.eval_index += 1

    def _end_evaluation(self, p, t):
        ring = self.ring()
        if ring is not None:
            ring.put(EPOCH, p.begin, max(t - p.begin, 0), p.number, 1)
        p.evaluating = False
        p.hold = None
        if self.begin:
            self.begin = t  # the training step that goes on did not take this time

    def _not_training(self, p, t):
        """Nothing stepped: what was held back was evaluation, or some other pass over the data."""
        hold, p.hold = p.hold, None
        self._begin_evaluation(p)
        for i, entry in enumerate(hold):
            last = i + 1 == len(hold)
            if last and not p.done:
                p.pending = entry
                self.open = p
                break
            p.pending = entry
            self._eval_step(p, t if last else hold[i + 1][0])
        self.wait = self.batch = 0
        self.fetched = False
        if self.current is p:
            self.current = None
        if p.done:
            self._end_evaluation(p, t)

    # ------------------------------------------------------------------------------------ collector

    def pause(self, phase, info):
        """For gc.callbacks."""
        if phase == 'start':
            self.pause_begin = _now()
            return
        begin = self.pause_begin
        if not begin or not (self.index or self.eval_index):
            return
        took = _now() - begin
        if took >= PAUSE_NS and len(self.pauses) < 256:
            self.pauses.append((begin, took, info['generation'], info['collected']))
        else:
            self.short_begin = self.short_begin or begin
            self.short_ns += took
            self.short_collected += info['collected']

    def write_pauses(self, ring):
        pauses, self.pauses = self.pauses, []
        for begin, took, generation, collected in pauses:
            ring.put(GC, begin, took, generation, collected)
        if self.short_ns > PAUSES_NS:
            ring.put(GC, self.short_begin, self.short_ns, NONE, self.short_collected)
            self.short_begin = self.short_ns = self.short_collected = 0

    # ------------------------------------------------------------------------------------------ end

    def finish(self):
        """The interpreter ends."""
        t = _now()
        ring = self.ring() if self.index or self.eval_index or self.current else None
        if ring is None:
            return
        self.fetching(None, t)
        p = self.current
        if p is not None and p.hold:
            p.done = True
            self._not_training(p, t)
        elif p is not None and p.training and not p.done:
            self._end_epoch(p, self.begin)
        self.write_pauses(ring)

    def account(self, ns):
        """An estimate of what the hook costs: what is frequent is measured every 16th time."""
        self.cost += ns
        ring = self.ring()
        if ring is not None:
            ring.cost(self.cost)

    def account_rare(self, begin):
        """Something that happens once began then and is done now."""
        ns = _now() - begin
        self.rare += ns
        self.cost += ns
