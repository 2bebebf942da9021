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

        Raises ConfigError when it does not serve, is *busy* with a transition, is the last one, or the last
        one that can hold the longest prompt.
        """
        state = self._known("drain", worker)
        if state.out_of_service is not None:
            raise ConfigError(f"drain {worker}: it is out of service: {state.out_of_service}")
        if state.held_by is not None:
            raise ConfigError(f"drain {worker}: {state.held_by} drained it already")
        if worker in busy:
            raise ConfigError(f"drain {worker}: it is in transition; wait for its end")
        others = [each.group for each in self._pool.workers.values() if each is not state and each.is_serving]
        if not others:
            raise ConfigError(f"drain {worker}: it is the last worker that serves")
        least = self._pool.least_degree
        if worker.degree >= least > max(other.degree for other in others):
            raise ConfigError(f"drain {worker}: {self._pool.last_room}")
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
