"""The one writer of a run's records: told everything in order, it keeps log and folds together."""

from collections.abc import Callable, Iterable, Sequence

from vertumnus.domain.codec import Record
from vertumnus.records.decisions import CandidateRow
from vertumnus.records.faults import Fault
from vertumnus.records.finish import finish_run
from vertumnus.records.folds import RunFolds
from vertumnus.records.log import LogHeader, LogWriter
from vertumnus.records.reconfigs import Reconfig
from vertumnus.records.run_dir import RunDir, RunEnd
from vertumnus.records.run_row import RunStatus
from vertumnus.records.verdict import Books


class Recorder:
    """Log, folds and sampled candidates of one run under way."""

    def __init__(self, run: RunDir, header: LogHeader) -> None:
        """Begin the log of *run*; raises LogWriteError."""
        self._run = run
        self._header = header
        self._folds = RunFolds(header)
        # folded batch by batch as written: the loop pays a list append a record, not a call chain
        self._log = LogWriter(run.log, header, self._written)
        self.record = self._log.append
        """Takes (source, body) of one input, fact or order; raises LogWriteError on a full disk."""
        self._candidates: list[CandidateRow] = []
        self._listener: Callable[[list[Record]], object] | None = None

    def tell(self, listener: Callable[[list[Record]], object] | None) -> None:
        """Have *listener* told each batch of records once the log has it; None for nobody."""
        self._listener = listener

    @property
    def reconfigs(self) -> list[Reconfig]:
        """The transitions that have ended, as far as they were written."""
        return self._folds.reconfigs

    @property
    def faults(self) -> Sequence[Fault]:
        """What has gone wrong, as far as it was written."""
        return self._folds.faults

    def keep(self, candidates: Iterable[CandidateRow]) -> None:
        """Keep the candidates of a placement that `RecordsConfig.samples` picked."""
        self._candidates += candidates

    def flush(self) -> None:
        """Write what is held back; for runs that people watch, a few times a second.

        Where nothing keeps to the wall clock this does nothing: frames that end when it says so would
        make equal runs differ in their bytes.
        """
        if self._header.keeps_wall_time:
            self._log.flush()

    def _written(self, batch: list[Record]) -> None:
        self._folds.apply(batch)
        if self._listener is not None:
            self._listener(batch)

    def finish(
        self,
        status: RunStatus,
        books: Books | None,
        wall_s: float,
        failure: str | None = None,
        others_cpu_share: float | None = None,
    ) -> RunEnd:
        """End the run: the log, the tables, and last of all how it ended.

        Raises LogWriteError or OSError; the run then stays unfinished and can be salvaged.
        """
        try:
            self._log.flush()
            return finish_run(
                self._run,
                self._header,
                self._folds,
                status=status,
                books=books,
                wall_s=wall_s,
                candidates=self._candidates,
                failure=failure,
                others_cpu_share=others_cpu_share,
            )
        finally:
            self._log.close()
