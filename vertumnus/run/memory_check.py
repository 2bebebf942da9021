"""Ranks' memory held against the books after every copy, deletion, split and merge (sec. 7.2, 8).

Three must agree on every block that a worker in service holds: the prefix index, that worker's table of
slots, and the rank's memory, read by the rank itself. What the bytes must be is known from the step that
computed them, whatever copies came between. The run stands still while ranks read, so its times are no
measurement.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from vertumnus.domain.codec import Body
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.facts import (
    RankLost,
    ReplicasDeleted,
    RequestArrived,
    RequestEnded,
    TransferFailed,
    TransferFinished,
)
from vertumnus.domain.jobs import AnyJob, Outcome
from vertumnus.domain.orders import CloseTransition
from vertumnus.domain.units import BlockKey, Rank, SlotId, Tokens
from vertumnus.domain.wording import counted
from vertumnus.run.pool import Pool
from vertumnus.run.slot_table import SlotTable
from vertumnus.serving.engine import Engine
from vertumnus.serving.loop import Record

ReadSlots: TypeAlias = Callable[[Iterable[SlotId]], Mapping[SlotId, bytes]]
"""Returns what the ranks find in some slots now, as digests, without those of ranks that are gone."""

Held: TypeAlias = dict[tuple[Rank, BlockKey], SlotId]

OPERATIONS = (TransferFinished, TransferFailed, ReplicasDeleted, CloseTransition, RankLost)
"""What is followed by a check."""

SHOWN = 10
"""Differences that are told one by one."""


class MemoryCheck:
    """An engine whose jobs are looked at, and the check between its events."""

    def __init__(
        self, engine: Engine, read_slots: ReadSlots, pool: Pool, block_tokens: Tokens, blocks_per_rank: int
    ) -> None:
        """Check *pool*, whose jobs go to *engine* through `submit`, and whose log through `note`."""
        self._engine = engine
        self._read_slots = read_slots
        self._pool = pool
        self._blocks_per_rank = blocks_per_rank
        self._table = SlotTable(block_tokens)
        self._is_due = False
        self.now, self.schedule, self.post = engine.now, engine.schedule, engine.post
        self.next, self.close = engine.next, engine.close
        self.checks = 0
        """Times that everything was compared."""
        self.blocks = 0
        """Blocks that were read and compared, all times together."""

    def submit(self, job: AnyJob) -> None:
        """Note what *job* will write, and start it."""
        self._table.submitted(job)
        self._engine.submit(job)

    def noting(self, record: Record) -> Record:
        """Return *record*, with everything that it is told told here first."""

        def told(source: int, body: Body) -> None:
            self.note(body)
            record(source, body)

        return told

    def note(self, body: Body) -> None:
        """Take one input, fact or order of the run, in order."""
        if isinstance(body, Outcome):
            self._table.concluded(body)
        elif isinstance(body, RequestArrived):
            self._table.arrived(body.request.request_id, body.request.block_keys or ())
        elif isinstance(body, RequestEnded):
            self._table.ended(body.request_id)
        elif isinstance(body, OPERATIONS):
            self._is_due = True

    def after_event(self) -> None:
        """Compare, if an operation has ended. Raises InvariantError when anything disagrees."""
        unread = self._table.unread
        if unread:
            self._table.read(self._read_slots(unread))
        if self._is_due:
            self._is_due = False
            self.compare()

    def compare(self) -> None:
        """Compare index, tables and memory. Raises InvariantError that names rank, block and both sides."""
        held = dict(self.held())
        digests = self._read_slots(held.values())
        self.checks += 1
        self.blocks += len(digests)
        problems = [*self._index_differs(held), *self._memory_differs(held, digests)]
        if problems:
            more = [f"... and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
            raise InvariantError("\n".join(["ranks and prefix index disagree:", *problems[:SHOWN], *more]))

    def held(self) -> Iterator[tuple[tuple[Rank, BlockKey], SlotId]]:
        """Yield the slot of every block that workers hold which are neither lost nor being formed."""
        for worker in self._pool.fleet.workers.values():
            if worker.state in ("serving", "draining"):
                for key, slot in worker.cache.resident_slots():
                    yield (slot // self._blocks_per_rank, key), slot

    def summary(self) -> str:
        """Return a line for people about a run without differences."""
        done = f"{counted(self.blocks, 'block')} read by their ranks in {counted(self.checks, 'check')}"
        return (
            f"memory: {done}, one after each copy, deletion, split and merge; "
            "index, slots and contents agree (times are no measurement)"
        )

    def _index_differs(self, held: Held) -> Iterator[str]:
        ranks = [
            rank
            for worker in self._pool.fleet.workers.values()
            if worker.state in ("serving", "draining")
            for rank in worker.group.ranks
        ]
        indexed = {(rank, key) for rank in ranks for key in self._pool.control.index.keys_on(1 << rank)}
        for rank, key in sorted(indexed - held.keys()):
            yield f"rank {rank}, block {key}: the index says that it is there, its worker does not hold it"
        for rank, key in sorted(held.keys() - indexed):
            slot = held[rank, key]
            yield f"rank {rank}, block {key}: its worker holds it in slot {slot}, the index does not say so"

    def _memory_differs(self, held: Held, digests: Mapping[SlotId, bytes]) -> Iterator[str]:
        for (rank, key), slot in held.items():
            contents, found = self._table.contents(slot), digests.get(slot)
            where = f"rank {rank}, block {key}, slot {slot}"
            if contents is None or contents.key != key:
                written = "nothing whole" if contents is None else f"block {contents.key}"
                yield f"{where}: its worker holds it there, but what was written there last is {written}"
            elif found is not None and contents.digest is not None and found != contents.digest:
                wrote = contents.digest.hex()
                yield f"{where}: the rank has {found.hex()}, the step that computed it wrote {wrote}"
