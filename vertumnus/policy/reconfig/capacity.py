"""kappa: how much demand a worker of each degree carries within the target attainment (sec. 6.1).

A worker carries more in a larger pool, where a long prompt leaves others to go to. By the square-root law
of queues, and in our simulations from 1 to 20 workers, the share of a worker's time that a pool of n can
use is about ``limit - loss / sqrt(n)``. So kappa may be known for some numbers of workers, and a line in
1/sqrt(n) gives the others; n counts the workers of all degrees, since requests may go to any of them.
The sum over the workers then says where ten pools of two degrees break to within 6 %, where the sum of lone
workers' kappa is off by a factor of 2 to 6 (`vertumnus_profiling.pool_breaks`).
"""

from collections.abc import Iterable, Mapping
from math import inf, sqrt

from vertumnus.domain.cluster import Composition
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.profile import Kappa
from vertumnus.domain.units import Nanoseconds
from vertumnus.domain.wording import counted

LEAST_SHARE = 0.1
"""A line that falls steeply is not followed below this share of the least known kappa."""


class Capacity:
    """Profiled kappa of each degree, in predicted seconds of work per second."""

    def __init__(self, kappa: Mapping[int, Kappa]) -> None:
        """Take kappa by degree: one number, or by the workers of a pool.

        Raises ConfigError for each one that is not a number above 0, and for a degree without any.
        """
        self._kappa = {degree: _by_workers(each) for degree, each in sorted(kappa.items())}
        problems = [problem for degree, row in self._kappa.items() for problem in _row_problems(degree, row)]
        if problems:
            raise ConfigError(*problems)

    def require(self, degrees: Iterable[int]) -> None:
        """Raise ConfigError naming every one of *degrees* that has no kappa."""
        problems = [
            f"profile.capacity.{degree}: missing; the controller needs kappa of every degree that a "
            f"worker may have, found {list(self._kappa)}"
            for degree in sorted(set(degrees))
            if degree not in self._kappa
        ]
        if problems:
            raise ConfigError(*problems)

    def of_worker(self, degree: int, workers: int) -> float:
        """Return kappa of one worker of *degree* in a pool of *workers*, at least 1 [s of work per s].

        Raises ConfigError when it is missing.
        """
        self.require([degree])
        row = self._kappa[degree]
        if len(row) == 1:
            return row[0][1]
        right = next((place for place, (known, _) in enumerate(row) if workers <= known), len(row) - 1)
        (few, kappa_few), (many, kappa_many) = row[max(1, right) - 1 : max(1, right) + 1]
        share = (1 / sqrt(few) - 1 / sqrt(workers)) / (1 / sqrt(few) - 1 / sqrt(many))
        least = LEAST_SHARE * min(kappa for _, kappa in row)
        return max(least, kappa_few + share * (kappa_many - kappa_few))

    def by_degree(self, composition: Composition) -> dict[int, float]:
        """Return the capacity of the workers of each degree present, ascending [s of work per s].

        Raises ConfigError when kappa is missing for a degree that is present.
        """
        counts = composition.counts()
        self.require(counts)
        workers = len(composition.workers)
        return {degree: count * self.of_worker(degree, workers) for degree, count in counts.items()}

    def of(self, composition: Composition) -> float:
        """Return the aggregate capacity of *composition* [s of work per s]."""
        return sum(self.by_degree(composition).values())

    def room(self, composition: Composition, span_ns: Nanoseconds) -> dict[int, float]:
        """Return what the workers of each degree carry in *span_ns*: kappa * H [ns of work]."""
        return {degree: rate * span_ns for degree, rate in self.by_degree(composition).items()}


_Row = tuple[tuple[int, float], ...]
"""(workers, kappa), ascending."""


def _by_workers(kappa: Kappa) -> _Row:
    return tuple(sorted(kappa.items())) if isinstance(kappa, Mapping) else ((1, kappa),)


def _row_problems(degree: int, row: _Row) -> list[str]:
    if not row:
        return [f"profile.capacity.{degree}: found no number of workers, must have at least one"]
    found = [
        f"profile.capacity.{degree}: found {kappa}, must be above 0 (seconds of work per second)"
        for _, kappa in row
        if not 0.0 < kappa < inf
    ]
    if row[0][0] < 1:
        found.append(
            f"profile.capacity.{degree}: found a pool of {counted(row[0][0], 'worker')}, must be at least 1"
        )
    return found
