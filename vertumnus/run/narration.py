"""What is done between the events of a run: progress is shown, the log reaches the disk, Ctrl-C ends it."""

from collections.abc import Callable
from time import monotonic

from vertumnus.domain.units import Nanoseconds, to_seconds
from vertumnus.records.faults import LOSSES, Fault
from vertumnus.records.recorder import Recorder
from vertumnus.run.interrupts import let_interrupt_through
from vertumnus.run.progress import Progress
from vertumnus.serving.loop import Loop

FLUSH_S = 0.25
"""What a killed run has lost of its log, and how old the newest thing is that a console sees [s].

A flush writes what would be written anyway; four a second cost nothing that shows.
"""

LOOK_EVERY = 1024
"""Events with which no request ends, as the timers of an idle pool, between two looks at the wall clock."""

SAID = LOSSES | {"step_failed", "transition_reopened", "wish_refused"}
"""Faults that are told while the run goes; those of single requests and copies are in its tables."""


class Narration:
    """Tells of a run while it goes."""

    def __init__(
        self,
        loop: Loop,
        recorder: Recorder,
        progress: Progress,
        is_awaited: Callable[[], bool],
        say: Callable[[str], None],
        clock: Callable[[], Nanoseconds],
    ) -> None:
        """Tell of *loop*; *is_awaited* says whether somebody waits for what is written next.

        *say* takes a line for people, one for each thing that goes wrong; *clock* is the run's.
        """
        self._say = say
        self._said = 0
        self._is_awaited = is_awaited
        self._loop = loop
        self._recorder = recorder
        self._progress = progress
        self._clock = clock
        self._ended = 0
        self._without_end = 0
        self._next_flush = monotonic() + FLUSH_S

    def after_event(self) -> None:
        """Show how many requests have ended, and write the log when it is time or somebody is waiting.

        Raises KeyboardInterrupt when one was held while the event was taken.
        """
        let_interrupt_through()
        if self._is_awaited():
            self._flush()
        if self._loop.ended != self._ended:
            self._ended = self._loop.ended
            self._progress.show(self._ended)
            self.flush_when_due()
            return
        self._without_end += 1
        if self._without_end % LOOK_EVERY == 0:
            self._progress.quiet(self._clock())

    def before_wait(self) -> None:
        """Write the log when it is time. Raises KeyboardInterrupt when one came during the wait before."""
        let_interrupt_through()
        self.flush_when_due()

    def flush_when_due(self) -> None:
        """Write the log when the last time is long enough ago."""
        now = monotonic()
        if now >= self._next_flush:
            self._next_flush = now + FLUSH_S
            self._flush()

    def end(self) -> None:
        """Tell what has not been told yet."""
        self._flush()

    def _flush(self) -> None:
        self._recorder.flush()
        faults = self._recorder.faults
        for fault in faults[self._said :]:
            if fault.kind in SAID:
                self._say(f"at {to_seconds(fault.t_ns):.1f} s: {self._told(fault)}")
        self._said = len(faults)

    def _told(self, fault: Fault) -> str:
        what = f"{fault.kind.replace('_', ' ')}, {fault.subject}: {fault.reason}"
        if fault.kind not in LOSSES:
            return what
        if not self._loop.can_serve:
            return (
                f"{what}; nobody is left to serve: all requests fail from here on, and the run ends INVALID"
            )
        whom = "its ranks" if fault.kind == "transition_failed" else "it"
        return f"{what}; the run goes on without {whom} and ends INVALID"
