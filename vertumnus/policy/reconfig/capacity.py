"""kappa: how much demand a worker of each degree carries within the target attainment (sec. 6.1)."""

from collections.abc import Iterable, Mapping
from math import inf

from vertumnus.domain.cluster import Composition
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import Nanoseconds


class Capacity:
    """Profiled kappa of each degree, in predicted seconds of work per second."""

    def __init__(self, kappa: Mapping[int, float]) -> None:
        """Take kappa by degree. Raises ConfigError for each one that is not a number above 0."""
        problems = [
            f"profile.capacity.{degree}: found {value}, must be above 0 (seconds of work per second)"
            for degree, value in sorted(kappa.items())
            if not 0.0 < value < inf
        ]
        if problems:
            raise ConfigError(*problems)
        self._kappa = dict(sorted(kappa.items()))

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

    def by_degree(self, composition: Composition) -> dict[int, float]:
        """Return the capacity of the workers of each degree present, ascending [s of work per s].

        Raises ConfigError when kappa is missing for a degree that is present.
        """
        counts = composition.counts()
        self.require(counts)
        return {degree: count * self._kappa[degree] for degree, count in counts.items()}

    def of(self, composition: Composition) -> float:
        """Return the aggregate capacity of *composition* [s of work per s]."""
        return sum(self.by_degree(composition).values())

    def room(self, composition: Composition, span_ns: Nanoseconds) -> dict[int, float]:
        """Return what the workers of each degree carry in *span_ns*: kappa * H [ns of work]."""
        return {degree: rate * span_ns for degree, rate in self.by_degree(composition).items()}
