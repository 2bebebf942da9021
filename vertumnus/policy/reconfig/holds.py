"""Workers that an operator drains and later reopens: no candidates meanwhile, their cache is kept."""

from collections.abc import Collection

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.orders import AnyOrder, Drain, Reopen
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.pool import PoolState


class Holds:
    """Drains and reopens single workers; such a worker takes part in no transition."""

    def __init__(self, pool: PoolState) -> None:
        self._pool = pool

    def drain(self, worker: CpGroup, who: str, busy: Collection[CpGroup]) -> list[AnyOrder]:
        """Take *worker* out of routing for *who*; what runs there finishes, its queue is placed elsewhere.

        Raises ConfigError when it does not serve, is *busy* with a transition, or is the last one.
        """
        state = self._known("drain", worker)
        if state.out_of_service is not None:
            raise ConfigError(f"drain {worker}: it is out of service: {state.out_of_service}")
        if state.held_by is not None:
            raise ConfigError(f"drain {worker}: {state.held_by} drained it already")
        if worker in busy:
            raise ConfigError(f"drain {worker}: it is in transition; wait for its end")
        if not any(_serves(other) for other in self._pool.workers.values() if other is not state):
            raise ConfigError(f"drain {worker}: it is the last worker that serves")
        state.held_by, state.draining = who, f"drained by {who}"
        return [Drain(worker)]

    def reopen(self, worker: CpGroup) -> list[AnyOrder]:
        """Let a worker that was drained serve again. Raises ConfigError when nobody drained it."""
        state = self._known("reopen", worker)
        if state.held_by is None:
            raise ConfigError(f"reopen {worker}: nobody drained it")
        if state.out_of_service is not None:
            raise ConfigError(f"reopen {worker}: it is out of service: {state.out_of_service}")
        state.held_by = state.draining = None
        return [Reopen(worker)]

    def _known(self, action: str, worker: CpGroup) -> WorkerState:
        state = self._pool.workers.get(worker)
        if state is None:
            present = ", ".join(map(str, self._pool.groups))
            raise ConfigError(f"{action} {worker}: there is no such worker; there are: {present}")
        return state


def _serves(state: WorkerState) -> bool:
    return state.out_of_service is None and state.draining is None
