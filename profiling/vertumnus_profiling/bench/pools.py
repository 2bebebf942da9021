"""Pools and requests that the benchmarks share: the shipped configuration, at sizes of our choice."""

import random
from collections.abc import Iterator, Mapping
from functools import cache

from msgspec import structs

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.request import Request
from vertumnus.domain.units import Blocks, Nanoseconds, Tokens

FIFTEEN_WORKERS = {4: 5, 2: 10}
THOUSAND_WORKERS = {4: 500, 2: 500}
BLOCK_TOKENS: Tokens = 512
PROMPT_BLOCKS: Blocks = 17
"""8.7K tokens, the mean of the tool-agent trace (Table 1)."""
SHARED_BLOCKS: Blocks = 12
"""Leading blocks that the requests of a family share: the trace's longer tool prompt."""
FAMILIES = 64
GAP_NS: Nanoseconds = 10_000_000


@cache
def simulated_config(*words: str) -> RunConfig:
    """Return the shipped simulated main job, changed by *words* (Hydra overrides)."""
    with hydra_configs():
        return to_run_config(plain_tree(composed(("+experiment=tool_agent", "backend=sim", *words))))


def of_composition(config: RunConfig, counts: Mapping[int, int]) -> RunConfig:
    """Return *config* with *counts* workers of each degree."""
    gpus = sum(degree * count for degree, count in counts.items())
    cluster = structs.replace(config.cluster, gpus=gpus, degrees=tuple(sorted(counts)), composition=counts)
    return structs.replace(config, cluster=cluster)


def groups_of(counts: Mapping[int, int]) -> tuple[CpGroup, ...]:
    """Return the workers of a composition, by first rank."""
    return of_composition(simulated_config(), counts).cluster.initial_composition().workers


def profile_of(config: RunConfig) -> ModelProfile:
    """Return the config's profile. Raises ConfigError where it has none."""
    if config.profile is None:
        raise ConfigError("profile: found null, the benchmarks need one")
    return config.profile


def family_requests(count: int, seed: int = 0) -> Iterator[Request]:
    """Yield *count* prompts of PROMPT_BLOCKS whole blocks: SHARED_BLOCKS of a family, the rest their own."""
    draw = random.Random(seed)
    own = PROMPT_BLOCKS - SHARED_BLOCKS
    tokens = PROMPT_BLOCKS * BLOCK_TOKENS + BLOCK_TOKENS // 2
    for number in range(count):
        first = draw.randrange(FAMILIES) * SHARED_BLOCKS
        tail = FAMILIES * SHARED_BLOCKS + number * own
        keys = (*range(first, first + SHARED_BLOCKS), *range(tail, tail + own))
        yield Request(number, number * GAP_NS, tokens, 1, keys)
