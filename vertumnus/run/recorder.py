"""Takes everything that a loop tells: into the log, the folds, the sampled decisions, the progress bar."""

from time import monotonic

from vertumnus.domain.codec import Body
from vertumnus.domain.facts import RequestEnded
from vertumnus.policy.placement import Decision
from vertumnus.records.decisions import CandidateRow
from vertumnus.records.folds import RunFolds
from vertumnus.records.log import LogWriter
from vertumnus.run.progress import Progress

FLUSH_S = 2.0
"""A live run's log reaches the disk at least this often [s]."""


class Recorder:
    """The record function of a run."""

    def __init__(self, log: LogWriter, folds: RunFolds, progress: Progress) -> None:
        self._append = log.append
        self._apply = folds.apply
        self._log = log
        self._progress = progress
        self._next_flush = monotonic() + FLUSH_S

    def record(self, source: int, body: Body) -> None:
        """Take one record. Raises LogWriteError when the disk refuses it."""
        self._append(source, body)
        self._apply(body)
        if type(body) is RequestEnded:
            self._progress.advance()
            if monotonic() >= self._next_flush:
                self._log.flush()
                self._next_flush = monotonic() + FLUSH_S


class DecisionSample:
    """Keeps the candidates of every n-th request, by its id."""

    def __init__(self, share: float) -> None:
        self._every = round(1 / share) if share > 0 else 0
        self.rows: list[CandidateRow] = []

    @property
    def observe(self) -> "DecisionSample | None":
        """This sample as a control plane's observer; None when it keeps nothing."""
        return self if self._every else None

    def __call__(self, decision: Decision) -> None:
        if decision.request_id % self._every:
            return
        for place, (offer, cost) in enumerate(zip(decision.offers, decision.costs, strict=True)):
            self.rows.append(
                CandidateRow(
                    decision.request_id,
                    decision.attempt,
                    decision.at,
                    offer.worker,
                    offer.cached_tokens,
                    offer.queue_ns,
                    offer.service_ns,
                    offer.extra_gpu_ns,
                    cost,
                    place == decision.chosen,
                    None if cost is not None else "left out by the policy's rule",
                )
            )
        for worker, reason in decision.excluded:
            self.rows.append(
                CandidateRow(
                    decision.request_id,
                    decision.attempt,
                    decision.at,
                    worker,
                    None,
                    None,
                    None,
                    None,
                    None,
                    False,
                    reason,
                )
            )
