"""Which prefills a sweep times: (R, P) pairs, by name or one by one, the same at every degree."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import Tokens
from vertumnus.domain.wording import counted
from vertumnus.live.bench import DECODE_TOKENS
from vertumnus.live.config import ModelConfig

FEWEST_POINTS = 6
"""Below this an error on points left out of the fit means nothing: a degree has five coefficients."""


class Size(NamedTuple):
    """One prefill's work."""

    uncached: Tokens
    """R >= 1."""
    cached: Tokens
    """P, whole blocks."""


class SweepPoint(NamedTuple):
    """One prefill of a sweep."""

    degree: int
    uncached: Tokens
    cached: Tokens


NAMED: dict[str, tuple[tuple[Tokens, ...], tuple[Tokens, ...]]] = {
    "quick": ((64, 256, 1_024), (0, 512, 2_048)),
    "full": ((32, 64, 128, 256, 512, 1_024, 2_048, 4_096), (0, 512, 2_048, 4_096)),
}
"""R and P of each grid, every pair of them; the break-even of tiny models lies near 256 tokens."""


def sizes_of(wanted: str, model: ModelConfig, block_tokens: Tokens) -> list[Size]:
    """Return the sizes that *wanted* names: ``quick``, ``full`` or ``R+P,R+P,...``.

    A named grid is cut to whole blocks and to what the model can hold. Raises ConfigError with every
    bad pair, and when too few are left for a fit.
    """
    if wanted in NAMED:
        pairs = product(*NAMED[wanted])
        sizes = [Size(uncached, cached - cached % block_tokens) for uncached, cached in pairs]
        sizes = [size for size in sizes if _fits(size, model)]
    else:
        sizes = _typed(wanted, model, block_tokens)
    sizes = list(dict.fromkeys(sizes))
    if len(sizes) < FEWEST_POINTS:
        raise ConfigError(
            f"--points: found {len(sizes)} that model {model.name} can hold, a fit needs at least "
            f"{FEWEST_POINTS}"
        )
    return sizes


def points_of(sizes: Sequence[Size], degrees: Sequence[int]) -> list[SweepPoint]:
    """Return every size at every degree, degree by degree."""
    return [SweepPoint(degree, *size) for degree in degrees for size in sizes]


def _typed(wanted: str, model: ModelConfig, block_tokens: Tokens) -> list[Size]:
    sizes, problems = [], []
    for word in wanted.split(","):
        uncached, _, cached = word.strip().partition("+")
        if not uncached.isdecimal() or not (cached or "0").isdecimal():
            problems.append(
                f"--points: found {word!r}, must be {', '.join(NAMED)} or pairs R+P as in 256+0,256+1024"
            )
            continue
        sizes.append(Size(int(uncached), int(cached or 0)))
        problems += _size_problems(sizes[-1], model, block_tokens)
    if problems:
        raise ConfigError(*problems)
    return sizes


def _size_problems(size: Size, model: ModelConfig, block_tokens: Tokens) -> Iterator[str]:
    told = f"--points: found {size.uncached}+{size.cached}"
    if size.uncached < 1:
        yield f"{told}, R must be at least 1"
    if size.cached % block_tokens:
        yield f"{told}, P must be whole blocks of {counted(block_tokens, 'token')}"
    if not _fits(size, model):
        yield f"{told}, R + P must be at most {model.max_position - DECODE_TOKENS} for model {model.name}"


def _fits(size: Size, model: ModelConfig) -> bool:
    return size.uncached + size.cached + DECODE_TOKENS <= model.max_position
