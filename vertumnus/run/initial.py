"""The first composition, settled before a start: as given, or chosen for a historical slice (sec. 6.1).

What a run's folder and log hold is the composition itself with the reason; the slice is not read again.
"""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import structs
from rich.console import Console

from vertumnus.config import RunConfig, validate
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.request import blocks_for
from vertumnus.domain.units import SECOND
from vertumnus.policy.config import PaperPolicy
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.initial import Candidate, InitialChoice, InitialRule
from vertumnus.policy.reconfig.sizes import SizeHistogram
from vertumnus.run.capacity import MeanRequest, pool_rate
from vertumnus.trace.blocks import to_requests
from vertumnus.trace.config import ArrivalConfig
from vertumnus.trace.history import GivenComposition, History, Slice, read_slice
from vertumnus.trace.load import LoadedTrace, load_rows


class Sizing(NamedTuple):
    """A run's config with its first composition settled, and how that came about."""

    config: RunConfig
    choice: InitialChoice
    reason: str
    """In one line, as it is recorded."""
    rule: InitialRule
    """What ranks the other compositions."""


def settled(config: RunConfig, console: Console) -> RunConfig:
    """Return *config* with its first composition as given; a choice is told on *console*.

    Raises ConfigError when the slice cannot be had, or what it chooses does not fit the rest.
    """
    if isinstance(config.initial, GivenComposition):
        return config
    sizing = size(config, config.initial)
    console.print(f"initial composition: {sizing.reason}", soft_wrap=True, markup=False)
    return sizing.config


def size(config: RunConfig, history: History) -> Sizing:
    """Choose the first composition of *config* for *history*. Raises ConfigError as `settled` does."""
    profile = config.profile
    assert profile is not None, "a rule of the config"
    workload = load_rows(config.workload, ArrivalConfig(), config.seed)
    arrival = _at_a_rate(config, profile, workload)
    found = read_slice(history, config.workload, arrival, config.seed, config.records.warmup_share)
    rule = _rule(config, profile, found, max(row.input_tokens for row in workload.rows))
    choice = rule.choose()
    reason = (
        f"{choice.composition}, chosen for {found.trace.description}; {'; '.join(_reasons(choice, found))}"
    )
    return Sizing(_sized(config, choice, arrival, reason), choice, reason, rule)


def _at_a_rate(config: RunConfig, profile: ModelProfile, workload: LoadedTrace) -> ArrivalConfig:
    """Return the run's arrivals; a load is a share of what the composition of the config can serve."""
    if config.arrival.load is None:
        return config.arrival
    return config.arrival.at_rate(config.arrival.load * pool_rate(config, profile, workload))


def _rule(config: RunConfig, profile: ModelProfile, found: Slice, longest: int) -> InitialRule:
    sizes, rows, block_tokens = SizeHistogram(), found.trace.rows, found.trace.block_tokens
    for uncached, cached in MeanRequest.of(to_requests(rows, block_tokens), block_tokens).sizes:
        sizes.add(uncached, cached)
    cluster = config.cluster
    return InitialRule(
        sizes.classes(),
        round(len(rows) / found.rate * SECOND),
        cluster.lattice,
        Capacity(profile.capacity or {}),
        profile.prefill_time(),
        getattr(config.policy, "gpu_time_weight", PaperPolicy().gpu_time_weight),
        -(-blocks_for(longest, block_tokens) // cluster.blocks_per_rank),
    )


def _reasons(choice: InitialChoice, found: Slice) -> Iterator[str]:
    candidate = choice.candidate
    worth = ", ".join(f"{workers:.1f} of CP{d} or more" for d, workers in choice.wanted_workers.items())
    yield f"its lengths are worth {worth or 'one degree'}"
    yield (
        f"{candidate.demand:.2f} s of work a second at {found.rate:.3g} req/s against a capacity of "
        f"{candidate.capacity:.2f}, the fullest degree at {candidate.utilisation:.0%}"
    )
    yield _why(candidate)


def _why(candidate: Candidate) -> str:
    if candidate.is_enough:
        return "of the suitable compositions with enough capacity the one with most large workers"
    return "no suitable composition has enough capacity, this one has the most"


def _sized(config: RunConfig, choice: InitialChoice, arrival: ArrivalConfig, reason: str) -> RunConfig:
    cluster = structs.replace(config.cluster, composition=choice.composition.counts())
    initial = GivenComposition(reason=reason)
    sized = structs.replace(config, cluster=cluster, arrival=arrival, initial=initial)
    if problems := validate(sized):
        raise ConfigError(*(f"initial chose {choice.composition}: {problem}" for problem in problems))
    return sized
