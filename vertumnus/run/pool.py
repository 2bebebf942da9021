"""Fleet and control plane of a run, built the same for serving and for replay."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.errors import ConfigError, InvariantError
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.units import Tokens
from vertumnus.policy.admission import Admission
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.policy.placement import Observer
from vertumnus.records.log import LogHeader
from vertumnus.records.verdict import Books
from vertumnus.workers.fleet import Fleet


class Pool(NamedTuple):
    """The two state machines of a run; one writer of state each."""

    fleet: Fleet
    control: ControlPlane

    def books(self) -> Books:
        """Return the closing balance, with what an audit of all books finds."""
        fleet = self.fleet.books()
        problems = tuple(
            problem for audit in (self.fleet.check, self.control.check) for problem in _found(audit)
        )
        return Books(
            ledger_ns=self.control.ledger.total_ns,
            pinned_blocks=fleet.pinned_blocks,
            blocks_in_use=fleet.blocks_in_use,
            blocks_held=fleet.blocks_held,
            problems=problems,
        )


def build_pool(
    config: RunConfig,
    profile: ModelProfile,
    block_tokens: Tokens,
    longest_prompt: Tokens | None = None,
    observer: Observer | None = None,
) -> Pool:
    """Build the pool of *config* as it is before its first event.

    Splits and drains leave a worker that can hold *longest_prompt*, the longest one to come.
    """
    cluster = config.cluster
    control = ControlPlane(
        config.policy,
        config.cache,
        cluster.initial_composition(),
        profile.prefill_time(),
        block_tokens=block_tokens,
        blocks_per_rank=cluster.blocks_per_rank,
        max_attempts=cluster.max_attempts,
        lattice=cluster.lattice,
        link=cluster.link,
        block_bytes=profile.kv_bytes_per_token * block_tokens,
        longest_prompt=longest_prompt,
        controller=config.controller,
        kappa=profile.capacity,
        token_scale=config.workload.token_scale,
        correction=config.correction,
        admission=Admission(config.admission, profile),
        observer=observer,
    )
    return Pool(Fleet(cluster, block_tokens), control)


def pool_of(header: LogHeader) -> Pool:
    """Build the pool of a log as it was before its first event.

    Raises ConfigError when the log's config is not one that this version understands.
    """
    config = stored_config(header.config)
    return build_pool(config, header.profile, header.block_tokens, header.longest_prompt)


def stored_config(tree: Mapping[str, Any]) -> RunConfig:
    """Return the config that a log keeps as *tree*. Raises ConfigError when this version has other keys."""
    try:
        return to_run_config(tree)
    except ConfigError as error:
        told = (f"the run is of another version: {problem}" for problem in error.problems)
        raise ConfigError(*told) from error


def _found(audit: Callable[[], None]) -> list[str]:
    try:
        audit()
    except InvariantError as error:
        return [str(error)]
    return []
