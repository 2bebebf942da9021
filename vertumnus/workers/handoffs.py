"""Hand-offs and decoding: from the end of a prompt's step to the end of its request (D6, D8).

A prompt waits in line until a decode rank has room for its whole sequence, pinning its blocks all the
while. Its copy then gives them back, and decoding goes on without the worker. With the last decode rank
nobody can be served any more: whoever is returned from then on is returned for good.
"""

from collections.abc import Iterable

from vertumnus.domain.facts import DecodeRankLost, FirstTokenEmitted, HandoffFailed, HandoffFinished, Status
from vertumnus.domain.jobs import DecodeDone, FirstToken, HandoffDone, HandoffJob, JobError, StopJob
from vertumnus.domain.units import JobId, Nanoseconds, Rank
from vertumnus.workers.decode_pool import DecodePool
from vertumnus.workers.fleet_state import FleetState
from vertumnus.workers.worker import Occupancy, Worker

NO_RANK = "no decode rank left"
"""Why a prompt is returned where nobody could take it."""


class Handoffs:
    """Prompts that wait for a decode rank, are copied to one, or are decoded there."""

    def __init__(self, state: FleetState) -> None:
        self._state = state
        self._pool = DecodePool(state.config.decode)
        self._open: dict[JobId, Occupancy] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def is_over(self) -> bool:
        """Whether every decode rank is lost: a prefill would be for nothing."""
        return self._pool.is_gone

    @property
    def decode_slots(self) -> int:
        """Sequences that hold a decode slot."""
        return self._pool.in_use

    def begin(self, worker: Worker, occupancy: Occupancy, now: Nanoseconds) -> None:
        """Hand a computed prompt to a decode rank, now or when one has room."""
        state, request = self._state, occupancy.request
        if occupancy.is_cancelled:
            state.leave(occupancy)
            state.end(request.request_id, "cancelled", 0, now)
            return
        worker.handoff_blocks += len(occupancy.slots)
        occupancy.is_handing_off = True
        if self.is_over:
            self._give_back(occupancy, now, NO_RANK)
            return
        rank = self._pool.admit(request.request_id, request.input_tokens + request.output_tokens)
        if rank is not None:
            self._submit(occupancy, rank)

    def admit_waiting(self) -> None:
        """Hand off those at the head of the line that now fit."""
        for request_id, rank in self._pool.admit_waiting():
            self._submit(self._state.occupied[request_id], rank)

    def copied(self, outcome: HandoffDone) -> None:
        """Give the prompt's blocks back: the decode rank has its own copy."""
        occupancy = self._open.get(outcome.job_id)
        if occupancy is None or not occupancy.holds_blocks or occupancy.decode_rank is None:
            return
        state = self._state
        state.leave(occupancy)
        state.facts.append(
            HandoffFinished(
                outcome.at, occupancy.request.request_id, occupancy.attempt, occupancy.decode_rank
            )
        )
        state.with_room.append(state.workers[occupancy.worker])

    def first_token(self, outcome: FirstToken) -> None:
        """Tell the first token, once."""
        occupancy = self._open.get(outcome.job_id)
        if occupancy is not None and not occupancy.is_decoding:
            occupancy.is_decoding = True
            self._state.facts.append(
                FirstTokenEmitted(outcome.at, occupancy.request.request_id, occupancy.attempt)
            )

    def decoded(self, outcome: DecodeDone) -> None:
        """End a request whose output is complete, or was stopped."""
        occupancy = self._close(outcome.job_id)
        if occupancy is None:
            return
        status: Status = "cancelled" if occupancy.is_cancelled else "finished"
        self._state.leave(occupancy)  # a stop may come before the copy was confirmed
        self._state.end(occupancy.request.request_id, status, outcome.output_tokens, outcome.at)
        self._after_decode(occupancy)

    def failed(self, outcome: JobError) -> bool:
        """Return a request whose hand-off or decoding broke; return whether the job is one of these."""
        occupancy = self._close(outcome.job_id)
        if occupancy is None:
            return False
        self._break(occupancy, outcome.at, outcome.reason)
        self._after_decode(occupancy)
        return True

    def cancel(self, occupancy: Occupancy, now: Nanoseconds) -> None:
        """End a cancelled request that waits in line; stop one that is copied or decoded.

        One that is still computed ends with its step.
        """
        if self._pool.withdraw(occupancy.request.request_id):
            self._state.leave(occupancy)
            self._state.end(occupancy.request.request_id, "cancelled", 0, now)
            self._after_decode(occupancy)
        elif occupancy.job_id is not None and occupancy.decode_rank is not None:
            self._state.jobs.append(StopJob(occupancy.job_id, occupancy.decode_rank))

    def return_waiting(self, occupancies: Iterable[Occupancy], now: Nanoseconds, reason: str) -> None:
        """Return those of *occupancies* that wait in line."""
        for occupancy in list(occupancies):
            if occupancy.job_id is None and self._pool.withdraw(occupancy.request.request_id):
                self._give_back(occupancy, now, reason)

    def rank_lost(self, fact: DecodeRankLost) -> None:
        """Return what was on a lost decode rank, and with the last one all others that are not in a step."""
        state, reason = self._state, f"decode rank {fact.rank} lost: {fact.reason}"
        for request_id in self._pool.lose(fact.rank):
            occupancy = state.occupied[request_id]
            if occupancy.job_id is not None:
                self._close(occupancy.job_id)
            self._break(occupancy, fact.at, reason)
        if self.is_over:
            self.return_waiting(state.occupied.values(), fact.at, reason)
            for worker in state.workers.values():
                state.return_queue(worker, fact.at, reason, is_final=True)
        state.with_room.extend(state.workers.values())

    def check(self) -> None:
        """Raise InvariantError unless the decode pool's books balance."""
        self._pool.check()

    def _submit(self, occupancy: Occupancy, decode_rank: Rank) -> None:
        state, request = self._state, occupancy.request
        occupancy.job_id, occupancy.decode_rank = state.next_job(), decode_rank
        self._open[occupancy.job_id] = occupancy
        state.jobs.append(
            HandoffJob(
                occupancy.job_id,
                request.request_id,
                occupancy.attempt,
                occupancy.worker,
                decode_rank,
                request.input_tokens,
                request.output_tokens,
                tuple(occupancy.slots),
            )
        )

    def _close(self, job_id: JobId) -> Occupancy | None:
        occupancy = self._open.pop(job_id, None)
        if occupancy is not None and occupancy.decode_rank is not None:
            self._pool.release(occupancy.decode_rank, occupancy.request.request_id)
        return occupancy

    def _break(self, occupancy: Occupancy, now: Nanoseconds, reason: str) -> None:
        request_id, rank = occupancy.request.request_id, occupancy.decode_rank
        if rank is not None:
            self._state.facts.append(HandoffFailed(now, request_id, occupancy.attempt, rank, reason))
        self._give_back(occupancy, now, reason)

    def _give_back(self, occupancy: Occupancy, now: Nanoseconds, reason: str) -> None:
        self._state.give_back(occupancy, now, reason, is_final=self.is_over)

    def _after_decode(self, occupancy: Occupancy) -> None:
        self.admit_waiting()
        worker = self._state.workers.get(occupancy.worker)
        if worker is not None:  # else it was split or merged while its prompt was decoded
            self._state.with_room.append(worker)
