"""The pool as configured: its GPUs, its first composition, its block memory, its decode side."""

from msgspec import Struct

from vertumnus.domain.cluster import MOST_GPUS, Composition, Lattice
from vertumnus.domain.link import LinkConfig


class DecodeConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The decode pool, provisioned apart from the prefill budget (sec. 3.1)."""

    ranks: int
    """Decode workers; each batches its sequences."""
    slots_per_rank: int
    """Sequences that one decode worker holds at a time."""
    tokens_per_rank: int
    """KV capacity of one decode worker, prompts and outputs together [tokens]."""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            if getattr(self, field) < 1:
                raise ValueError(f"{field} must be at least 1, got {getattr(self, field)}")
        if self.ranks > MOST_GPUS:
            raise ValueError(f"ranks must be at most {MOST_GPUS:,}, got {self.ranks}")


class ClusterConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A fixed budget of prefill GPUs and how it is divided into CP workers at the start."""

    gpus: int
    """G: prefill GPUs, one rank each; constant over a run."""
    degrees: tuple[int, ...]
    """Supported CP degrees, ascending powers of two."""
    composition: dict[int, int]
    """Workers of each degree at the start; the degrees add up to ``gpus``."""
    ranks_per_node: int
    """A group never crosses a node of this many ranks (a power of two)."""
    blocks_per_rank: int
    """Block slots of each rank's KV store."""
    decode: DecodeConfig
    link: LinkConfig = LinkConfig()
    step_tokens: int = 0
    """Uncached tokens that a step may batch over several requests; 0 is one request a step [tokens]."""
    handoff_share: float = 0.25
    """A worker starts no step while waiting hand-offs pin more than this share of its blocks."""
    max_attempts: int = 3
    """Placements of one request before it is given up."""

    def __post_init__(self) -> None:
        if self.blocks_per_rank < 1:
            raise ValueError(f"blocks_per_rank must be at least 1, got {self.blocks_per_rank}")
        if self.step_tokens < 0:
            raise ValueError(f"step_tokens must be at least 0, got {self.step_tokens}")
        if not 0.0 < self.handoff_share <= 1.0:
            raise ValueError(f"handoff_share must be in (0, 1], got {self.handoff_share}")
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts must be at least 1, got {self.max_attempts}")

    @property
    def lattice(self) -> Lattice:
        """Every group that this pool may form."""
        return Lattice(self.gpus, self.degrees, self.ranks_per_node)

    def initial_composition(self) -> Composition:
        """Lay the configured workers out on the ranks. Raises ConfigError with every problem."""
        return Composition.of_counts(self.composition, self.lattice)
