"""The cache-aware prefill-time model: W(R, P) of Eq. 1 and E_C(R, P) of Eq. 2 (sec. 3.2)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from vertumnus.domain.units import SECOND, Nanoseconds, Tokens


def attention_work(uncached: Tokens, cached: Tokens) -> int:
    """Return W(R, P) = R*P + R*(R + 1)/2, the query-key pairs left after a prefix hit (Eq. 1)."""
    return uncached * cached + uncached * (uncached + 1) // 2


class Coefficients(Struct, frozen=True, forbid_unknown_fields=True):
    """Eq. 2's coefficients for one model on one kind of hardware, shared by all degrees."""

    startup_s: float
    """d: fixed cost of a step [s]."""
    per_uncached_s: float
    """a: communication and data movement, not divided by the degree [s/token]."""
    per_cached_s: float
    """b: access to the cached prefix [s/token]."""
    divided_per_uncached_s: float
    """c: token-local work, divided by the degree [s/token]."""
    divided_per_pair_s: float
    """alpha: attention work, divided by the degree [s/query-key pair]."""
    per_doubling_s: float = 0.0
    """g: cost of each doubling of the degree, g*log2(C); 0 is the published form [s]."""

    def __post_init__(self) -> None:
        _require_seconds(self)


class DegreeCoefficients(Struct, frozen=True, forbid_unknown_fields=True):
    """Eq. 2 fitted at one degree alone, where a and c/C, and d and g*log2(C), are one term each."""

    startup_s: float
    """Fixed cost of a step [s]."""
    per_uncached_s: float
    """Work and communication of an uncached token [s/token]."""
    per_cached_s: float
    """Access to the cached prefix [s/token]."""
    per_pair_s: float
    """Attention work [s/query-key pair]."""
    per_prefix_s: float = 0.0
    """What any cached prefix costs a step, however short: its gathering is a round of its own [s]."""

    def __post_init__(self) -> None:
        _require_seconds(self)


class DegreeTime(Struct, frozen=True, gc=False):
    """Eq. 2 at one degree with the division by C already made [ns, ns/token, ns/pair]."""

    startup_ns: float
    per_uncached_ns: float
    per_cached_ns: float
    per_pair_ns: float
    per_prefix_ns: float = 0.0


class PrefillTimeModel:
    """E_C(R, P): predicted queue-free prefill time at each supported degree."""

    def __init__(self, by_degree: Mapping[int, DegreeTime]) -> None:
        self._by_degree = dict(by_degree)

    @classmethod
    def of(
        cls,
        coefficients: Coefficients,
        degrees: Iterable[int],
        own: Mapping[int, DegreeCoefficients] = MappingProxyType({}),
    ) -> "PrefillTimeModel":
        """Build the model of *degrees* (powers of two) from shared *coefficients* (Eq. 2).

        A degree with coefficients of its *own* takes those instead.
        """
        return cls(
            {
                degree: _of_degree(own[degree]) if degree in own else _at_degree(coefficients, degree)
                for degree in degrees
            }
        )

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degrees that this model can predict, ascending."""
        return tuple(sorted(self._by_degree))

    @property
    def by_degree(self) -> Mapping[int, DegreeTime]:
        """Eq. 2 at each degree that this model can predict."""
        return self._by_degree

    def predict(self, degree: int, uncached: Tokens, cached: Tokens) -> Nanoseconds:
        """Return E_C(R, P) for one request alone in a step [ns] (Eq. 2)."""
        time = self._by_degree[degree]
        # attention_work inlined: this runs for every candidate degree of every request
        return int(
            time.startup_ns
            + (time.per_prefix_ns if cached else 0.0)
            + time.per_uncached_ns * uncached
            + time.per_cached_ns * cached
            + time.per_pair_ns * (uncached * cached + uncached * (uncached + 1) // 2)
        )

    def predictor(self) -> Callable[[int, Tokens, Tokens], Nanoseconds]:
        """Return what `predict` is at this instant, for many predictions; not to be kept."""
        return self.predict

    def step_shares(self, degree: int, items: Sequence[tuple[Tokens, Tokens]]) -> list[Nanoseconds]:
        """Return each (R, P) item's share of one step's time [ns].

        The start-up cost is paid once, by the first item; the shares add up to the step's time.
        """
        startup = int(self._by_degree[degree].startup_ns)
        alone = [self.predict(degree, uncached, cached) for uncached, cached in items]
        return [time - startup if place else time for place, time in enumerate(alone)]


def _at_degree(shared: Coefficients, degree: int) -> DegreeTime:
    doublings = degree.bit_length() - 1  # log2 of a power of two, without libm
    return DegreeTime(
        startup_ns=(shared.startup_s + shared.per_doubling_s * doublings) * SECOND,
        per_uncached_ns=(shared.per_uncached_s + shared.divided_per_uncached_s / degree) * SECOND,
        per_cached_ns=shared.per_cached_s * SECOND,
        per_pair_ns=shared.divided_per_pair_s / degree * SECOND,
    )


def _of_degree(own: DegreeCoefficients) -> DegreeTime:
    return DegreeTime(
        startup_ns=own.startup_s * SECOND,
        per_uncached_ns=own.per_uncached_s * SECOND,
        per_cached_ns=own.per_cached_s * SECOND,
        per_pair_ns=own.per_pair_s * SECOND,
        per_prefix_ns=own.per_prefix_s * SECOND,
    )


def _require_seconds(coefficients: Struct) -> None:
    for field in coefficients.__struct_fields__:
        value = getattr(coefficients, field)
        if not 0.0 <= value < float("inf"):
            raise ValueError(f"{field} must be a finite number of seconds >= 0, got {value}")
