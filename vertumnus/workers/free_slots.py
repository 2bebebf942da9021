"""The free block slots of one rank, without a list of all that were never used."""

from vertumnus.domain.units import Rank, SlotId


class FreeSlots:
    """Slots that came back, latest first, then those that nobody has had yet, lowest first."""

    __slots__ = ("_end", "_fresh", "returned")

    def __init__(self, rank: Rank, blocks_per_rank: int) -> None:
        self.returned: list[SlotId] = []
        self._fresh: SlotId = rank * blocks_per_rank
        self._end: SlotId = self._fresh + blocks_per_rank

    def __len__(self) -> int:
        return len(self.returned) + self._end - self._fresh

    @property
    def never_used(self) -> range:
        """The slots that nobody has had yet."""
        return range(self._fresh, self._end)

    def take(self) -> SlotId | None:
        """Return a free slot, which is free no more; None when there is none."""
        if self.returned:
            return self.returned.pop()
        if self._fresh == self._end:
            return None
        self._fresh += 1
        return self._fresh - 1
