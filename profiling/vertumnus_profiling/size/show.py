"""An answer as text, or as what --json prints."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import numpy as np

from vertumnus.commandline.columns import in_columns
from vertumnus.domain.wording import counted
from vertumnus_profiling.size.choosing import Measured
from vertumnus_profiling.size.judging import SEGMENTS, Estimate, attained, difference, ttft
from vertumnus_profiling.size.options import Options
from vertumnus_profiling.size.program import Answer

_PLAIN = re.compile(r"='([\w./-]+)'$")
"""A value that needs none of the quotes that it has."""


def text_of(answer: Answer, options: Options) -> str:
    """Return what ``vertumnus size`` prints."""
    return "\n".join([*_head(answer, options), "", _table(answer, options), "", *_verdict(answer, options)])


def document_of(answer: Answer, options: Options) -> dict[str, Any]:
    """Return the answer for programs; shares 0..1, seconds, req/s."""
    choice, later = answer.choice, answer.later
    return {
        "simulated": True,
        "planned_rate": answer.planned_rate,
        "target": options.target,
        "headroom": options.headroom,
        "ceiling": answer.ceiling._asdict(),
        "candidates": [_numbers(each) for each in answer.measured],
        "compositions_left_out": answer.left_out,
        "recommendation": {
            **_numbers(choice),
            "fits": _fits(choice, answer, options),
            "ttft_margin_s": ttft(choice.sized.requests).margin,
            "attainment_margin": attained(choice.sized.requests).margin,
        },
        "second_half": {
            "mean_ttft_s": ttft(later).value,
            "attainment": attained(later).value,
            "within_margin": _holds(answer),
        },
        "adaptive": {name: _gain(answer, name)._asdict() for name in answer.adaptive},
        "best_controller": answer.best_controller,
    }


def _numbers(each: Measured) -> dict[str, Any]:
    requests = each.sized.requests
    return {
        "policy": each.candidate.policy_name,
        "composition": {str(degree): count for degree, count in each.candidate.composition.items()},
        "mean_ttft_s": each.mean_ttft_s,
        "p90_ttft_s": _percentile(requests.ttft_s, 90),
        "attainment": each.attainment,
        "highest_rate": each.sized.highest_rate,
    }


def _head(answer: Answer, options: Options) -> Iterator[str]:
    config, first, second = options.config, answer.first, answer.second
    profile = config.profile
    assert profile is not None, "a simulated run has one"
    yield f"SIMULATED with {profile.model} on {profile.hardware}, {config.cluster.gpus} GPUs"
    yield (
        f"sized on the first half of {config.workload.name}, {counted(first.requests, 'request')} at "
        f"{answer.planned_rate:.3g} req/s; judged on the second, {second.requests:,} at "
        f"{_later_rate(answer, options):.3g} req/s"
    )
    yield (
        f"bound: with nobody waiting and an unlimited cache mean TTFT is {answer.ceiling.mean_ttft_s:.3f} s, "
        f"{answer.ceiling.attainment:.1%} of the tokens within target"
    )


def _later_rate(answer: Answer, options: Options) -> float:
    return options.config.arrival.rate or answer.second.rate / (options.config.arrival.time_scale or 1.0)


def _table(answer: Answer, options: Options) -> str:
    share = f"{options.target:.0%}"
    rows = [("policy", "composition", "mean TTFT", "P90", "attainment", f"{share} within target up to")]
    for each in answer.measured:
        highest = each.sized.highest_rate
        rows.append(
            (
                each.candidate.policy_name,
                each.candidate.workers,
                f"{each.mean_ttft_s:.3f} s",
                f"{_percentile(each.sized.requests.ttft_s, 90):.3f} s",
                f"{each.attainment:.2%}",
                "no rate" if highest is None else f"{highest:.1f} req/s",
            )
        )
    return in_columns(rows)


def _verdict(answer: Answer, options: Options) -> Iterator[str]:
    choice = answer.choice
    time, share = ttft(choice.sized.requests), attained(choice.sized.requests)
    if not _fits(choice, answer, options):
        yield (
            f"no candidate meets {options.target:.0%} at {options.headroom:g} times the planned rate; "
            "the one that carries most:"
        )
    yield f"recommended: {choice.candidate.workers} under policy {choice.candidate.policy_name}"
    yield (
        f"  expected   mean TTFT {time.value:.3f} +- {time.margin:.3f} s, attainment {share.value:.2%} +- "
        f"{share.margin:.2%} (95 %, by how {SEGMENTS} parts of the first half differ)"
    )
    yield (
        f"  afterwards mean TTFT {ttft(answer.later).value:.3f} s, attainment "
        f"{attained(answer.later).value:.2%} on the second half: "
        f"{'within' if _holds(answer) else 'OUTSIDE'} the margin"
    )
    yield from _second_best(answer)
    yield from _adaptive(answer)
    yield f"run it: {_command(answer, options)}"
    if answer.left_out:
        yield f"not tried, since they suit the lengths less: {counted(answer.left_out, 'composition')}"


def _second_best(answer: Answer) -> Iterator[str]:
    others = [
        each for each in answer.measured if each.candidate.composition != answer.choice.candidate.composition
    ]
    if others:
        gain = difference(answer.choice.sized.requests, others[0].sized.requests)
        yield (
            f"  next best  {others[0].candidate.workers} under {others[0].candidate.policy_name}: "
            f"{_slower(gain)}"
        )


def _slower(gain: Estimate) -> str:
    if abs(gain.value) <= gain.margin:
        return f"no difference that shows ({gain.value:+.4f} +- {gain.margin:.4f} s mean TTFT)"
    return (
        f"mean TTFT {abs(gain.value):.3f} +- {gain.margin:.3f} s {'longer' if gain.value > 0 else 'shorter'}"
    )


def _adaptive(answer: Answer) -> Iterator[str]:
    name = answer.best_controller
    gain = _gain(answer, name)
    share = gain.value / ttft(answer.later).value
    told = "no gain that shows" if gain.value <= gain.margin else f"{share:.1%} less"
    yield (
        f"  adaptive   controller {name} from this composition on, second half: mean TTFT "
        f"{ttft(answer.adaptive[name][1]).value:.3f} s, {told} ({gain.value:+.4f} +- {gain.margin:.4f} s)"
    )


def _gain(answer: Answer, controller: str) -> Estimate:
    """Return what a controller saves of the second half's mean TTFT [s]."""
    return difference(answer.adaptive[controller][1], answer.later)


def _holds(answer: Answer) -> bool:
    requests, later = answer.choice.sized.requests, answer.later
    return ttft(requests).holds(ttft(later).value) and attained(requests).holds(attained(later).value)


def _fits(choice: Measured, answer: Answer, options: Options) -> bool:
    return choice.fits(answer.planned_rate * options.headroom, options.target)


def _command(answer: Answer, options: Options) -> str:
    candidate = answer.choice.candidate
    counts = ", ".join(f"{degree}: {count}" for degree, count in sorted(candidate.composition.items()))
    chosen = ("controller=", "policy=", "cluster.composition=")
    words = [_PLAIN.sub(r"=\1", word) for word in options.words if not word.startswith(chosen)]
    return shlex.join(
        ["vertumnus", *words, f"policy={candidate.policy_name}", f"cluster.composition={{{counts}}}"]
    )


def _percentile(values: "np.ndarray[Any, np.dtype[np.float64]]", percent: int) -> float:
    return float(np.percentile(values, percent))
