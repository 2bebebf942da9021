"""The words of a run's summary, in its order."""

from typing import Final

TERMS: Final = {
    "EXECUTED, SIMULATED": "Ranks of this machine computed the prefills, or the simulator timed them.",
    "offered": "Mean rate of the planned arrivals.",
    "given up": "How long clients wait for a first token before they cancel (arrival.patience_s).",
    "measured": "Requests after the warm-up; every number but the counts is of them.",
    "TTFT": "From a request's planned arrival to its first token.",
    "all, others as infinite": "Percentiles in which whatever did not finish is infinitely late.",
    "queue": "From the planned arrival to the start of the prefill, without cache wait.",
    "cache wait": "What a copy of cached blocks held the prefill up.",
    "prefill": "From the start of the step that computes the prompt to its end.",
    "ext": "Hand-off of the KV to the decode side, and the first decode step.",
    "target, attained": "TTFT target of a range of lengths (Table 2), and the share of input tokens whose "
    "requests met it; whoever did not finish missed it.",
    "cached": "Share of a worker's input tokens that its prefix cache held.",
    "longest queue": "Most requests that waited at the worker at once.",
    "busy": "Share of the worker's time in which a step ran.",
    "drain": "From the first order to drain to the last worker at a boundary; other workers go on.",
    "park": "Of this, how long one half of a merge waited for the other.",
    "switch": "From the new epoch's sending to the opening of the new workers.",
    "hit rate": "Share of input tokens that were not computed; beside it that of an unlimited shared cache.",
    "throughput": "Finished requests over the time from the first measured arrival to the last first token.",
    "lower bound": "TTFT alone, at the best degree, with an unlimited shared cache, as predicted.",
    "TPOT": "Mean time per output token after the first.",
    "VALID, INVALID": "Whether the numbers count; INVALID says why not.",
}
"""Term and meaning."""
