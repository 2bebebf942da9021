"""Steps between adjacent compositions: one worker into its halves, or two siblings into their parent.

A move keeps the sum of the degrees, and every worker stays a group of the lattice (sec. 6.2).
"""

from collections.abc import Collection, Iterable, Iterator

from vertumnus.domain.cluster import Composition, CpGroup, Lattice
from vertumnus.domain.errors import ConfigError, InvariantError
from vertumnus.domain.move import Direction, Move
from vertumnus.domain.wording import counted


def moves(composition: Composition, lattice: Lattice, busy: Collection[CpGroup] = ()) -> list[Move]:
    """Return every legal move among workers that are not *busy*: splits, then merges, by first rank."""
    free = [worker for worker in sorted(composition.workers) if worker not in busy]
    present = frozenset(free)
    splits = [_split(worker) for worker in free if not list(_split_problems(worker, lattice))]
    merges = [
        _merge(worker)
        for worker in free
        if worker < worker.sibling
        and worker.sibling in present
        and not list(_merge_problems((worker, worker.sibling), lattice))
    ]
    return [*splits, *merges]


def check_move(
    composition: Composition,
    lattice: Lattice,
    kind: Direction,
    workers: Collection[CpGroup],
    busy: Collection[CpGroup] = (),
) -> Move:
    """Return the move that an operator asks for: one worker to split, or two to merge.

    Raises ConfigError with every reason why it is illegal, of the first kind that there is: a wrong number
    of workers; one that does not exist or is in transition (*busy*); workers that are not siblings, a degree
    not supported.
    """
    named = tuple(sorted(workers))
    problems = (
        [*_count_problems(kind, named)]
        or [*_presence_problems(composition, named, busy)]
        or [*impossible(lattice, kind, named)]
    )
    if problems:
        wish = f"{kind} {' + '.join(map(str, named)) or 'nothing'}"
        raise ConfigError(*(f"{wish}: {problem}" for problem in problems))
    return _split(named[0]) if kind == "split" else _merge(named[0])


def impossible(lattice: Lattice, kind: Direction, workers: Collection[CpGroup]) -> Iterator[str]:
    """Yield why *kind* of *workers*, groups of *lattice*, is illegal whatever the composition."""
    named = tuple(sorted(workers))
    miscounted = list(_count_problems(kind, named))
    yield from miscounted
    if not miscounted:
        yield from _split_problems(named[0], lattice) if kind == "split" else _merge_problems(named, lattice)


def leaves_no_room(
    move: Move, composition: Composition, least_degree: int, busy: Collection[CpGroup] = ()
) -> bool:
    """Return whether *move* takes away the last worker that can hold a prompt which needs *least_degree*.

    Workers in transition (*busy*) do not count: what becomes of them may fail.
    """
    staying = [worker for worker in composition.workers if worker not in move.sources and worker not in busy]

    def hold(workers: Iterable[CpGroup]) -> bool:
        return any(worker.degree >= least_degree for worker in workers)

    return hold(move.sources) and not hold([*move.targets, *staying])


def apply(composition: Composition, move: Move) -> Composition:
    """Return *composition* after *move*. Raises InvariantError when a source is not one of its workers."""
    absent = [str(source) for source in move.sources if source not in composition.workers]
    if absent:
        raise InvariantError(f"{move}: not among the workers: {', '.join(absent)}")
    staying = [worker for worker in composition.workers if worker not in move.sources]
    return Composition(tuple(sorted([*staying, *move.targets])))


def _split(worker: CpGroup) -> Move:
    return Move("split", (worker,), worker.halves)


def _merge(worker: CpGroup) -> Move:
    return Move("merge", worker.parent.halves, (worker.parent,))


def _count_problems(kind: Direction, workers: tuple[CpGroup, ...]) -> Iterator[str]:
    wanted = 1 if kind == "split" else 2
    if len(workers) != wanted:
        yield f"found {counted(len(workers), 'worker')}, a {kind} takes {wanted}"
    elif len(set(workers)) != wanted:
        yield f"found {workers[0]} twice, a {kind} takes {counted(wanted, 'worker')}"


def _presence_problems(
    composition: Composition, workers: tuple[CpGroup, ...], busy: Collection[CpGroup]
) -> Iterator[str]:
    for worker in workers:
        if worker in busy:
            yield f"worker {worker} is already in transition"
        elif worker not in composition.workers:
            yield f"there is no worker {worker}; {_instead(composition, worker)}"


def _instead(composition: Composition, absent: CpGroup) -> str:
    """Return which workers have the ranks of one that is *absent*; all of them when none has."""
    workers = sorted(composition.workers)
    first, end = absent.first_rank, absent.first_rank + absent.degree  # no masks: of ranks that none may have
    in_place = [each for each in workers if each.first_rank < end and first < each.first_rank + each.degree]
    named = ", ".join(map(str, in_place or workers)) or "none"
    return f"{'in its place' if in_place else 'in service'}: {named}"


def _split_problems(worker: CpGroup, lattice: Lattice) -> Iterator[str]:
    if worker.degree == 1:
        yield "a worker of degree 1 cannot be split"
    elif worker.degree // 2 not in lattice.degrees:
        yield _unsupported(worker.degree // 2, lattice)


def _merge_problems(workers: tuple[CpGroup, ...], lattice: Lattice) -> Iterator[str]:
    first, second = workers
    parent = first.parent
    if second != first.sibling:
        yield f"{first} and {second} are not siblings; {first} merges only with {first.sibling}"
    elif parent.degree > lattice.ranks_per_node:
        yield (
            f"{parent} would not fit a node of {counted(lattice.ranks_per_node, 'rank')} "
            f"(cluster.ranks_per_node)"
        )
    elif parent.degree not in lattice.degrees:
        yield _unsupported(parent.degree, lattice)


def _unsupported(degree: int, lattice: Lattice) -> str:
    return f"degree {degree} is not supported; allowed: {list(lattice.degrees)} (cluster.degrees)"
