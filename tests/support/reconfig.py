"""Windows, pools and models with round numbers, for tests of the controller."""

from collections.abc import Iterator

from vertumnus.domain.cluster import Composition, CpGroup, Lattice
from vertumnus.domain.move import Move
from vertumnus.domain.prefill_time import DegreeTime, PrefillTimeModel
from vertumnus.domain.units import SECOND
from vertumnus.policy.reconfig.sizes import SizeClass
from vertumnus.policy.reconfig.window import WindowReport

LATTICE = Lattice(4, (1, 2, 4), 4)
SPAN_NS = 20 * SECOND


def a_composition(*names: str) -> Composition:
    """The workers named as on screen: "0x2" is two ranks from rank 0."""
    return Composition(tuple(sorted(CpGroup(*map(int, name.split("x"))) for name in names)))


def inverse(move: Move) -> Move:
    """The move that undoes *move*."""
    return Move("merge" if move.kind == "split" else "split", move.targets, move.sources)


def a_report(
    demand_s: float = 0.0,
    long: int = 0,
    requests: int = 1_000,
    sizes: tuple[SizeClass, ...] = (),
    span_ns: int = SPAN_NS,
) -> WindowReport:
    """A window of 20 s; the long fraction is *long* of *requests*."""
    return WindowReport(
        index=0,
        start_ns=0,
        end_ns=span_ns,
        requests=requests,
        demand_ns=round(demand_s * SECOND),
        demand_by_degree_ns={1: round(demand_s * SECOND)},
        counted=requests,
        counted_long=long,
        sizes=sizes,
    )


def a_model(**per_token_ns: tuple[float, float]) -> PrefillTimeModel:
    """E_C = startup + per_token * R, from ``d2=(startup, per token)`` in ns."""
    return PrefillTimeModel(
        {int(name[1:]): DegreeTime(startup, each, 0.0, 0.0) for name, (startup, each) in per_token_ns.items()}
    )


def tilings(lattice: Lattice, first_rank: int = 0) -> Iterator[tuple[CpGroup, ...]]:
    """Every way to cover the ranks from *first_rank* on with groups of the lattice."""
    if first_rank == lattice.gpus:
        yield ()
    for group in lattice.groups():
        if group.first_rank == first_rank:
            for rest in tilings(lattice, first_rank + group.degree):
                yield (group, *rest)
