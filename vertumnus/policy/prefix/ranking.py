"""Which candidates of a scan are carried out: the published ranking, and ours (sec. 7.2).

Published (``count``): first replicas by missed time per copied block, further ones by access per replica,
smaller copies first among equals. Ours (``seconds_per_byte``): both together by the predicted prefill time
that a block would save, since all blocks have the same bytes. Either way a block brings its missing
ancestors along, each list gives at most a number of operations, and all copies together at most a budget.
"""

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.orders import TransferReason
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.units import BlockKey, Blocks, Nanoseconds, Tokens
from vertumnus.policy.prefix.destinations import Destinations
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.policy.prefix.scan import Candidate

LOOKED_AT = 32
"""Candidates, per operation of a list, for which destinations are looked at, those of most demand first."""


class Replication(NamedTuple):
    """A replica that is to be made."""

    reason: TransferReason
    path: tuple[BlockKey, ...]
    destination: CpGroup
    copied: Blocks = 0
    """Leading blocks that its copies have brought, whether that was reported or not."""


class _Ranked(NamedTuple):
    rank: tuple[float, ...]
    """Lower is carried out first."""
    candidate: Candidate


class Ranking:
    """Chooses the replications of one scan."""

    def __init__(
        self,
        index: PrefixIndex,
        destinations: Destinations,
        operations: int,
        budget_blocks: Blocks | None,
        theta_intra: float,
    ) -> None:
        """Choose up to *operations* of each kind, and *budget_blocks* of copies in all (None: no bound)."""
        self._index = index
        self._destinations = destinations
        self._operations = operations
        self._budget = budget_blocks
        self._theta_intra = theta_intra

    def by_count(self, inter: Sequence[Candidate], intra: Sequence[Candidate]) -> list[Replication]:
        """Return the published choice, first replicas before further ones."""
        return self._choose(self._published(inter)) + self._choose(self._published(intra))

    def by_seconds(
        self, candidates: Iterable[Candidate], prefill_time: PrefillTimeModel, block_tokens: Tokens
    ) -> list[Replication]:
        """Return the choice by predicted seconds saved per byte."""
        saving = BlockSaving(prefill_time, block_tokens)
        return self._choose(_Ranked((-saving.of(c), c.depth), c) for c in candidates)

    def _published(self, candidates: Sequence[Candidate]) -> list[_Ranked]:
        ranked = []
        for candidate in nsmallest(LOOKED_AT * self._operations, candidates, key=_by_demand):
            destination = self._destinations.best(self._index.path(candidate.key), candidate.degree)
            if destination is not None:
                ranked.append(_Ranked(_rank(candidate, destination.missing), candidate))
        return ranked

    def _choose(self, ranked: Iterable[_Ranked]) -> list[Replication]:
        chosen: list[Replication] = []
        left: dict[TransferReason, int] = {"inter": self._operations, "intra": self._operations}
        for _, candidate in sorted(ranked):
            reason: TransferReason = "intra" if candidate.replicas else "inter"
            if not left[reason] or not self._is_wanted(candidate):
                continue
            path = self._index.path(candidate.key)
            destination = self._destinations.best(path, candidate.degree)
            if destination is not None and self._affords(destination.missing):
                left[reason] -= 1
                self._destinations.add(path, destination)
                chosen.append(Replication(reason, path, destination.worker))
        return chosen

    def _is_wanted(self, candidate: Candidate) -> bool:
        """Return whether the candidate is one still, with what longer paths chosen before it bring along."""
        key, degree, _, replicas, demand = candidate
        new = self._destinations.new_replicas(key, degree)
        if replicas + new >= self._destinations.workers(degree):
            return False
        return not new or 0 < replicas < demand / self._theta_intra - new

    def _affords(self, blocks: Blocks) -> bool:
        if self._budget is None:
            return True
        if blocks > self._budget:
            return False
        self._budget -= blocks
        return True


class BlockSaving:
    """What replicas are predicted to save in prefill time; a scan asks for few depths, again and again."""

    def __init__(self, prefill_time: PrefillTimeModel, block_tokens: Tokens) -> None:
        self._predict = prefill_time.predict
        self._block_tokens = block_tokens
        self._block_ns: dict[tuple[int, Blocks], Nanoseconds] = {}

    def of(self, candidate: Candidate) -> float:
        """Return the prefill time that a replica of the candidate's block is predicted to save [ns].

        A first one what its degree has missed; a further one what each replica there saves: its accesses
        times the time to compute the block behind its ancestors.
        """
        if not candidate.replicas:
            return candidate.demand
        return candidate.demand / candidate.replicas * self._block(candidate.degree, candidate.depth)

    def _block(self, degree: int, depth: Blocks) -> Nanoseconds:
        took = self._block_ns.get((degree, depth))
        if took is None:
            block, cached = self._block_tokens, (depth - 1) * self._block_tokens
            took = self._predict(degree, 2 * block, cached) - self._predict(degree, block, cached + block)
            self._block_ns[degree, depth] = took
        return took


def _by_demand(candidate: Candidate) -> tuple[float, Candidate]:
    return -candidate.demand / max(1, candidate.replicas), candidate


def _rank(candidate: Candidate, missing: Blocks) -> tuple[float, ...]:
    if not candidate.replicas:
        return (-candidate.demand / missing,)
    return -candidate.demand / candidate.replicas, missing
