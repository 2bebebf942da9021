"""The chapters of the report in the paper's order, each with the experiments that it is made of."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from vertumnus.report.paper import figure2, figure3, figure4, figure13, figure14, rates, table1, table2
from vertumnus.report.paper.chapter import Chapter, Runs

Make: TypeAlias = Callable[[Runs], Chapter]


class Entry(NamedTuple):
    """A table or figure of the paper."""

    name: str
    """As it is asked for."""
    title: str
    chapter: Make
    simulated: Sequence[str]
    """Experiments in virtual time."""
    executed: Sequence[str] = ()
    """Experiments on the ranks of this machine."""
    only: Mapping[str, Collection[str]] = MappingProxyType({})
    """Values by axis that the figure needs of what its sweeps declare; an axis that is not here whole."""
    words: Sequence[str] = ()
    """Overrides of its sweeps, each of which gives way to one of the same key that is typed."""

    def is_named(self, name: str) -> bool:
        """Return whether *name* is its own, or that of a figure out of its range: figure8 of figures7-9."""
        first, _, last = self.name.removeprefix("figures").partition("-")
        within = map("figure{}".format, range(int(first), int(last) + 1)) if last else ()
        return name == self.name or name in within

    def needs(self, words: Mapping[str, str], typed: Collection[str]) -> bool:
        """Return whether the figure needs the run of *words*, by key; axes that were *typed* are as typed."""
        return all(words.get(axis) in values for axis, values in self.only.items() if axis not in typed)


SEEDS = ("1", "2", "3")
"""As many as the paper repeats each experiment, of sweeps that declare more."""

ENTRIES = (
    Entry("table1", "Table 1: workloads", table1.chapter, [table1.EXPERIMENT]),
    Entry("table2", "Table 2: TTFT targets", table2.chapter, [table2.EXPERIMENT]),
    Entry(
        "figure2", "Fig. 2: speed-up by context parallelism", figure2.chapter,
        [figure2.SIMULATED], [figure2.EXECUTED],
    ),
    Entry("figure3", "Fig. 3: a day of production", figure3.chapter, [figure3.EXPERIMENT]),
    Entry(
        "figure4", "Fig. 4: accuracy of the prefill-time model", figure4.chapter,
        [figure4.SIMULATED], [figure4.EXECUTED],
    ),
    *(
        Entry(
            model.figures, f"{model.heading}: the methods at load, {model.title}", rates.chapter_of(model),
            [rates.EXPERIMENT],
            only={"policy": rates.METHODS, "cell": model.cells, "seed": SEEDS},
            words=[f"grid.level={','.join(rates.LEVELS)}"],
        )
        for model in (rates.DEEPSEEK, rates.QWEN)
    ),
    Entry("figure13", "Fig. 13: changing the composition", figure13.chapter, [figure13.EXPERIMENT]),
    Entry(
        "figure14", "Fig. 14: the prefix manager", figure14.chapter, [figure14.EXPERIMENT],
        only={"seed": SEEDS},
    ),
)  # fmt: skip
NAMES = tuple(entry.name for entry in ENTRIES)
