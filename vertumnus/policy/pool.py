"""The pool as the control plane knows it: which workers there are, which of them serve (sec. 3.1, 6.2)."""

from collections.abc import Sequence

from vertumnus.domain.cluster import Composition, CpGroup
from vertumnus.domain.units import Blocks, Rank
from vertumnus.domain.wording import counted
from vertumnus.policy.candidates import WorkerState


class PoolState:
    """Workers by group, in order of first rank, and by rank."""

    def __init__(self, composition: Composition, blocks_per_rank: Blocks, longest_needs: Blocks = 1) -> None:
        """Begin with *composition*; the longest prompt that is known to come needs *longest_needs*."""
        self._blocks_per_rank = blocks_per_rank
        self.least_degree = -(-longest_needs // blocks_per_rank)
        """Of a worker that can hold that prompt."""
        self.workers: dict[CpGroup, WorkerState] = {}
        self._of_rank: dict[Rank, WorkerState] = {}
        self._set(self._new(composition.workers))

    @property
    def groups(self) -> tuple[CpGroup, ...]:
        """The workers' groups, in the order of their places."""
        return tuple(self.workers)

    @property
    def serving(self) -> Composition:
        """The workers that are not out of service, whoever made it so."""
        return Composition(tuple(g for g, state in self.workers.items() if state.out_of_service is None))

    @property
    def in_routing(self) -> Composition:
        """The workers in service that no operator has drained: what a controller may count on and move."""
        serving = (group for group in self.serving.workers if self.workers[group].held_by is None)
        return Composition(tuple(serving))

    @property
    def last_room(self) -> str:
        """Why the last worker of `least_degree` or more has to stay."""
        return (
            f"no other worker could hold the longest prompt of this run, which needs degree "
            f"{self.least_degree} at {counted(self._blocks_per_rank, 'block')} a rank "
            f"(cluster.blocks_per_rank)"
        )

    def of_rank(self, rank: Rank) -> WorkerState:
        """Return the worker that *rank* belongs to."""
        return self._of_rank[rank]

    def at_degree(self, degree: int) -> Sequence[WorkerState]:
        """Return the workers of *degree*."""
        return self._at_degree.get(degree, ())

    def replace(
        self, sources: Sequence[CpGroup], targets: Sequence[CpGroup], out_of_service: str | None
    ) -> None:
        """Put *targets* where *sources* were, with a reason when they are not to serve."""
        kept = [state for group, state in self.workers.items() if group not in sources]
        made = self._new(targets)
        for state in made:
            state.out_of_service = out_of_service
        self._set([*kept, *made])

    def _new(self, groups: Sequence[CpGroup]) -> list[WorkerState]:
        return [WorkerState(0, group, group.degree * self._blocks_per_rank) for group in groups]

    def _set(self, states: list[WorkerState]) -> None:
        states.sort(key=lambda state: state.group)
        for place, state in enumerate(states):
            state.place = place
        self.workers = {state.group: state for state in states}
        self.degrees = tuple(state.group.degree for state in states)
        """By place."""
        self._of_rank = {rank: state for state in states for rank in state.group.ranks}
        self._at_degree: dict[int, list[WorkerState]] = {}
        for state in states:
            self._at_degree.setdefault(state.group.degree, []).append(state)
