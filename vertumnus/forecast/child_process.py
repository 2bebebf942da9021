"""Forecasts of a live run: a process of its own computes them, the loop pays for the snapshot only.

    child -> who started it:      length (u64), READY as a pickle, once its imports are done
    thread "forecasts" -> child:  length (u64), the Question as a pickle
    child -> thread:              length (u64), the outcomes, or what went wrong, as a pickle

The child imports nothing of torch and ends when its input does. When it dies, sends what is no answer, or
thinks for longer than PATIENCE_S, the question that it was at is told as failed, and the next one gets a new
child: whatever happens, every question is answered. A run's clock starts when the child is ready: what it
imports takes as long as many a window, on cores that the ranks want then.
"""

import pickle
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread, Timer
from types import TracebackType
from typing import IO, Any, NamedTuple

from vertumnus.domain.errors import VertumnusError
from vertumnus.domain.facts import ForecastFailed, ForecastFinished
from vertumnus.domain.forecast import ForecastOutcome
from vertumnus.domain.orders import Forecast
from vertumnus.domain.units import Nanoseconds
from vertumnus.forecast.question import NoSnapshot, Question, Questions
from vertumnus.serving.engine import Engine

_LENGTH = struct.Struct("<Q")

PATIENCE_S = 600.0
"""No forecast takes nearly as long, and one that does is of a past that is long over [s]."""

READY_S = 60.0
"""Imports and no more; a run does not wait longer for a child than this [s]."""

READY = "ready"
"""The first word of a child."""

_UNDELIVERED: Nanoseconds = 0
"""Stands in ``at`` until the engine delivers the fact."""


class NoAnswer(VertumnusError):
    """The child was waited for in vain, or said something else."""


class _Asked(NamedTuple):
    forecast_id: int
    question: Question


class ChildForecasts:
    """Carries out Forecast orders for a loop on the wall clock; a context manager that ends the child."""

    def __init__(self, questions: Questions, engine: Engine) -> None:
        """Answer through *engine*, from a thread."""
        self._questions = questions
        self._engine = engine
        self._asked: SimpleQueue[_Asked | None] = SimpleQueue()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        self._thread = Thread(target=self._work, name="forecasts", daemon=True)

    def __enter__(self) -> "ChildForecasts":
        try:
            self._start_child()
        except Exception:  # the run needs no forecast yet; the first question tries again and is told why not
            self._end_child()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        self._asked.put(None)
        if self._child is not None:
            self._child.kill()
        self._thread.join()
        self._end_child()

    def __call__(self, order: Forecast, now: Nanoseconds) -> None:
        """Take *order*: freeze the pool and leave the rest to the thread."""
        try:
            self._asked.put(_Asked(order.forecast_id, self._questions.put(order, now)))
        except NoSnapshot as error:
            self._engine.post(ForecastFailed(_UNDELIVERED, order.forecast_id, str(error)))

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None and not self._is_closed:
            answered = self._ask_child(asked.question)
            if self._is_closed:
                return
            if isinstance(answered, str):
                self._engine.post(ForecastFailed(_UNDELIVERED, asked.forecast_id, answered))
            else:
                self._engine.post(ForecastFinished(_UNDELIVERED, asked.forecast_id, answered))

    def _start_child(self) -> subprocess.Popen[bytes]:
        """Start a child and wait until it is ready; raises as `_patiently` does."""
        # known before it is waited for: whoever leaves meanwhile has somebody to kill
        child = self._child = _spawn()
        if self._is_closed:
            child.kill()
        answers = child.stdout
        assert answers is not None
        said = _patiently(child, READY_S, lambda: receive(answers))
        if said != READY:
            raise NoAnswer(f"the process that computes forecasts said {said!r} instead of being ready")
        return child

    def _ask_child(self, question: Question) -> tuple[ForecastOutcome, ...] | str:
        """Return what the child answers, or why it does not."""
        try:
            return _ask(self._child or self._start_child(), question)
        except (OSError, EOFError):
            code = self._end_child()
            return f"the process that computes forecasts ended (exit code {code})"
        except NoAnswer as error:
            self._end_child()
            return str(error)
        except Exception as error:  # whatever it is, the thread lives and the question is answered
            self._end_child()
            return f"the process that computes forecasts cannot be asked: {type(error).__name__}: {error}"

    def _end_child(self) -> int | None:
        child, self._child = self._child, None
        if child is None:
            return None
        child.kill()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(OSError):  # what could not be written any more
                    pipe.close()
        return child.wait()


def _ask(child: subprocess.Popen[bytes], question: Question) -> tuple[ForecastOutcome, ...] | str:
    """Return what *child* answers; raises as `_patiently` does, and what a pickle of *question* raises."""
    asks, answers = child.stdin, child.stdout
    assert asks is not None and answers is not None

    def converse() -> Any:
        send(asks, question)
        return receive(answers)

    answered: tuple[ForecastOutcome, ...] | str = _patiently(child, PATIENCE_S, converse)
    return answered


def _patiently(child: subprocess.Popen[bytes], patience_s: float, converse: Callable[[], Any]) -> Any:
    """Return what *converse* returns, which reads from *child*.

    Raises NoAnswer when that takes longer than *patience_s*, OSError or EOFError when the child ends before,
    and whatever there is to say of a message that cannot be sent or read.
    """
    watchdog = Timer(patience_s, child.kill)
    watchdog.daemon = True
    watchdog.start()
    try:
        return converse()
    except (OSError, EOFError) as error:
        if watchdog.finished.is_set():
            raise NoAnswer(f"the process that computes forecasts said nothing in {patience_s:g} s") from error
        raise
    finally:
        watchdog.cancel()


def send(pipe: IO[bytes], message: object) -> None:
    """Write one message."""
    payload = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(payload)))
    pipe.write(payload)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Return the next message; raises EOFError when there is none or only a part of it."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    payload = pipe.read(length)
    if len(payload) < length:
        raise EOFError
    return pickle.loads(payload)


def _spawn() -> subprocess.Popen[bytes]:
    # -P: what lies in the current folder must not pass for a module. A session of its own: a Ctrl-C is the
    # run's to answer, and its end closes the pipe
    command = [sys.executable, "-P", "-m", "vertumnus.forecast.child"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
