"""One step between adjacent compositions (sec. 6.2); what is legal is `policy.reconfig.moves`' to say."""

from typing import Literal, NamedTuple, TypeAlias

from vertumnus.domain.cluster import CpGroup

Direction: TypeAlias = Literal["split", "merge"]


class Move(NamedTuple):
    """One split or merge."""

    kind: Direction
    sources: tuple[CpGroup, ...]
    """Workers that end, by first rank."""
    targets: tuple[CpGroup, ...]
    """Workers that begin, by first rank."""

    def __str__(self) -> str:
        return f"{self.kind} {' + '.join(map(str, self.sources))} -> {' + '.join(map(str, self.targets))}"
