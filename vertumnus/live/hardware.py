"""What the ranks of a plan compute on, in words; a profile made elsewhere is known by them."""

from vertumnus.domain.wording import counted
from vertumnus.live.machine import usable_cores
from vertumnus.live.plan import LivePlan
from vertumnus.records.provenance import cpu_model


def hardware_of(plan: LivePlan) -> str:
    """Return the processor or device that each rank of *plan* computes on, and how many there are."""
    if plan.device == "cuda":
        import torch  # here, not on top: the name of a CPU is told without paying for torch

        return f"{torch.cuda.get_device_name()}, one for each rank"
    return f"{cpu_model() or 'unknown CPU'}, {counted(usable_cores(), 'core')}, one thread for each rank"


def shared_cores(plan: LivePlan) -> int | None:
    """Return the cores that the ranks of *plan* share; None where each has a device of its own."""
    return None if plan.device == "cuda" else usable_cores()
