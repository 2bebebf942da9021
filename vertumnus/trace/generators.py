"""The generators by name: from a seed to the rows of a calibrated trace."""

from collections.abc import Callable, Mapping

from vertumnus.domain.errors import ConfigError
from vertumnus.trace.config import WorkloadConfig
from vertumnus.trace.drafts import BLOCK_TOKENS
from vertumnus.trace.l_eval import l_eval
from vertumnus.trace.ladder import ladder
from vertumnus.trace.phases import phased
from vertumnus.trace.production import production, production_day
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.tool_agent import tool_agent

SEEDED: Mapping[str, Callable[[int], list[TraceRow]]] = {
    generator.__name__: generator for generator in (l_eval, tool_agent, production, production_day, ladder)
}


def generated(workload: WorkloadConfig, seed: int) -> list[TraceRow]:
    """Return the rows of the workload's generator, in order of arrival.

    Raises ConfigError when the workload asks for blocks that the generators do not make.
    """
    if workload.trace_block_tokens != BLOCK_TOKENS:
        raise ConfigError(
            f"workload.block_tokens: found {workload.block_tokens}, must be {BLOCK_TOKENS} "
            f"with workload.generator={workload.generator}; workload.token_scale makes blocks smaller"
        )
    if workload.generator == "phases":
        return phased(workload.phases, seed)
    assert workload.generator is not None
    return SEEDED[workload.generator](seed)
