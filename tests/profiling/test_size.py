"""``vertumnus size``: the search, the margins and the choice by hand, and one question from end to end."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.traces import a_line, write_trace
from vertumnus.commandline.exit_codes import BAD_INPUT, OK
from vertumnus.domain.errors import ConfigError
from vertumnus_profiling.size.__main__ import main
from vertumnus_profiling.size.choosing import Candidate, Measured, recommended
from vertumnus_profiling.size.halves import halves
from vertumnus_profiling.size.judging import attained, difference, ttft
from vertumnus_profiling.size.options import read_options
from vertumnus_profiling.size.search import REACH, TOLERANCE, highest_rate
from vertumnus_profiling.size.trials import Sized
from vertumnus_profiling.tune.objectives import Requests


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@given(st.floats(0.02, 50.0), st.floats(0.1, 100.0))
def test_the_highest_rate_is_found_within_its_tolerance(highest: float, guess: float) -> None:
    """Wherever the limit lies within reach of the guess, what is told is met, and 6 % more is not."""
    tried: list[float] = []

    def meets(rate: float) -> bool:
        tried.append(rate)
        return rate <= highest

    found = highest_rate(meets, guess)
    if highest < guess / REACH:
        assert found is None
    elif guess / REACH * 1.01 < highest < guess * REACH * 0.99:
        assert found is not None and found <= highest < found * TOLERANCE * 1.0001
    assert len(tried) <= 12


def test_a_rate_that_is_never_met_or_always() -> None:
    """None for the first; the second ends at the reach of the search."""
    assert highest_rate(lambda rate: False, 10.0) is None
    found = highest_rate(lambda rate: True, 10.0)
    assert found == 10.0 * REACH


def _requests(*ttfts: float, met: float = 1.0) -> Requests:
    tokens = np.full(len(ttfts), 10.0)
    return Requests(np.array(ttfts), tokens, met * tokens)


def test_margins_follow_from_how_segments_differ() -> None:
    """Six segments of one request: mean 3.5, standard deviation 1.8708, times 2.571 * sqrt(7 / 6)."""
    found = ttft(_requests(1, 2, 3, 4, 5, 6))
    assert found.value == 3.5
    assert found.margin == pytest.approx(2.571 * 1.870829 * (7 / 6) ** 0.5)
    assert found.holds(3.5 + found.margin) and not found.holds(3.6 + found.margin)
    assert ttft(_requests(*[2.0] * 12)).margin == 0.0


def test_a_difference_is_paired() -> None:
    """Requests that differ by 0.1 s each, whatever they are, differ by exactly that."""
    one = _requests(1, 2, 3, 4, 5, 6)
    other = _requests(1.1, 2.1, 3.1, 4.1, 5.1, 6.1)
    found = difference(one, other)
    assert (found.value, found.margin) == (pytest.approx(0.1), pytest.approx(0.0, abs=1e-12))


def test_attainment_is_weighted_by_tokens() -> None:
    """Half of the tokens of each request within target is 50 %; 12 without a spread leave 3 / 12 open."""
    found = attained(_requests(*[1.0] * 12, met=0.5))
    assert (found.value, found.margin) == (0.5, 3 / 12)
    uneven = Requests(np.ones(6), np.array([50.0, 10, 10, 10, 10, 10]), np.array([50.0, 10, 10, 10, 10, 10]))
    assert attained(uneven).margin == pytest.approx(3 / (100**2 / 3_000))  # counts as 3.3 requests


def _measured(name: str, ttft_s: float, highest: float | None, met: float = 1.0) -> Measured:
    candidate = Candidate(name, {"name": name}, {2: 2, 4: 1})
    return Measured(candidate, Sized(_requests(*[ttft_s] * 12, met=met), highest))


def test_the_fastest_with_room_to_spare_is_recommended() -> None:
    """Planned 10 req/s with headroom 1.2: whoever stops at 11 comes behind, however fast it is."""
    order = recommended(
        [
            _measured("slow", 2.0, 20.0),
            _measured("tight", 0.5, 11.0),
            _measured("missing", 0.4, None, met=0.1),
            _measured("fast", 1.0, 12.0),
            _measured("late", 0.3, 30.0, met=0.8),
        ],
        12.0,
        0.9,
    )
    assert [each.candidate.policy_name for each in order] == ["fast", "slow", "late", "tight", "missing"]
    assert order[0].candidate.workers == "2 x CP2 + 1 x CP4"


POOL = ("cluster.gpus=8", "cluster.composition={2: 2, 4: 1}", "workload=tool_agent")


def test_halves_have_every_request_once() -> None:
    """Cut in the middle of the time, not of the requests; a window is halved as it is."""
    config = read_options([*POOL, "workload.requests=400"]).config
    first, second = halves(config)
    assert first.requests + second.requests == 400
    assert second.window["start_s"] == first.window["duration_s"]
    window = read_options([*POOL, "workload.start_s=100", "workload.duration_s=60"]).config
    first, second = halves(window)
    assert first.window == {"start_s": 100.0, "duration_s": 30.0, "requests": first.requests}
    assert second.window == {"start_s": 130.0, "duration_s": 30.0, "requests": second.requests}
    with pytest.raises(ConfigError, match="the first half of the trace has 68 requests, each half must have"):
        halves(read_options([*POOL, "workload.requests=117"]).config)


def test_a_file_is_read_as_what_it_is() -> None:
    """Format and block size come from the file; a pool of small blocks has as many tokens of memory."""
    lines = [
        a_line(timestamp=n / 10, input_length=40, hash_ids=[n, n + 1, n + 2], chat_id=n, parent_chat_id=-1)
        for n in range(300)
    ]
    write_trace(Path("t.jsonl"), *lines)
    config = read_options(["t.jsonl", "model=deepseek_v4_flash", "cluster=pool40_cp4_cp8"]).config
    assert (config.workload.format, config.workload.scaled_block_tokens) == ("bailian", 16)
    assert config.cluster.blocks_per_rank == 585 * 32
    assert config.profile is not None and config.profile.model == "deepseek_v4_flash"
    assert config.slo.buckets[0].ttft_s == 0.5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gone.jsonl"], "gone.jsonl: no such file"),
        (["a.jsonl", "b.jsonl"], "found 2 traces (a.jsonl, b.jsonl), must be one"),
        ([*POOL, "--target", "1.5"], "--target: found 1.5, must be above 0 and at most 1"),
        ([*POOL, "--headroom", "0.5"], "--headroom: found 0.5, must be from 1 to 100"),
        ([*POOL, "--jobs", "0"], "--jobs: found 0, must be at least 1"),
        ([*POOL, "--policies", "papr"], "--policies: papr: no such policy; did you mean paper?"),
        ([*POOL, "model=qwen"], "model=qwen: no profile of that name"),
        ([*POOL, "backend=live"], "backend"),
        ([*POOL, "arrival.patience_s=5"], "arrival.patience_s: found 5, must be null: a pool is sized for"),
        ([*POOL, "--policies", "static"], "policy.length_threshold: required, but not set"),
        (
            [*POOL, "workload.requests=400", "--target", "1.0", "slo.buckets=[{ttft_s: 0.2}]"],
            "--target: found 1, but with nobody waiting and an unlimited cache",
        ),
    ],
)
def test_mistakes_end_before_anything_is_simulated(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 28 among them: a target that an idle pool misses is refused, with what it would attain."""
    assert main([*words, "--jobs", "1"] if "--jobs" not in words else words) == BAD_INPUT
    assert message in capsys.readouterr().err


QUESTION = (
    *POOL,
    "workload.requests=240",
    "arrival.rate=3",
    "arrival.jitter=uniform_tick",
    "--policies",
    "paper",
)
QUESTION = (*QUESTION, "--jobs", "1")


def test_a_question_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    """Three compositions of 8 GPUs, best first; the answer names rates, margins and the run to start."""
    assert main([*QUESTION, "--json"]) == OK
    found = json.loads(capsys.readouterr().out)
    assert found["simulated"] is True
    compositions = {json.dumps(each["composition"], sort_keys=True) for each in found["candidates"]}
    assert len(compositions) == len(found["candidates"]) == 3
    for each in found["candidates"]:
        assert each["highest_rate"] is None or each["highest_rate"] > 0
        assert 0 < each["mean_ttft_s"] <= each["p90_ttft_s"]
    assert found["recommendation"]["composition"] == found["candidates"][0]["composition"]
    assert found["recommendation"]["ttft_margin_s"] > 0
    assert found["ceiling"]["mean_ttft_s"] < found["candidates"][0]["mean_ttft_s"]
    assert set(found["adaptive"]) == {"thresholds", "brisk"}
    assert found["second_half"]["mean_ttft_s"] > 0


@pytest.mark.long  # the page on traces shows, and its test runs, another one
def test_the_answer_as_text_can_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Its first line says that it is simulated; its last words make a valid config."""
    assert main(QUESTION) == OK
    out = capsys.readouterr().out
    assert out.startswith("SIMULATED with qwen3_30b_a3b on h20, 8 GPUs\n")
    assert "recommended: " in out and "within target up to" in out and "second half" in out
    (command,) = [line for line in out.splitlines() if line.startswith("run it: ")]
    assert "policy=paper" in command and "cluster.composition={" in command
