"""Fold of the scans' notes: demand and copies by degree, and the hottest prefixes (sec. 7.1-7.2)."""

from msgspec import Struct

from vertumnus.domain.orders import DegreeHeat, HotBlock, NoteScan
from vertumnus.domain.units import Nanoseconds
from vertumnus.records.clock import Clock
from vertumnus.records.timeline import Handlers


class TrieSample(Struct, frozen=True, gc=False):
    """The trie at one degree, as one scan saw it, with what the scan chose at all degrees."""

    t_ns: Nanoseconds
    note: NoteScan
    heat: DegreeHeat


class HotPrefix(Struct, frozen=True, gc=False):
    """One of the most wanted blocks of a degree, as one scan saw it."""

    t_ns: Nanoseconds
    scan: int
    block: HotBlock


class TrieSamples:
    """The scans of a run, in order."""

    def __init__(self, clock: Clock) -> None:
        self.samples: list[TrieSample] = []
        self.hot: list[HotPrefix] = []
        self.handlers: Handlers = {NoteScan: self._noted}
        self._clock = clock

    def _noted(self, note: NoteScan) -> None:
        now = self._clock.now
        self.samples += [TrieSample(now, note, heat) for heat in note.degrees]
        self.hot += [HotPrefix(now, note.scan, block) for block in note.hottest]
