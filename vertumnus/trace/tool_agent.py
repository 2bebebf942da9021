"""The tool-agent workload, generated: agents with recurring tool prompts and multi-turn sessions.

Structure as in the public tool-agent trace: two families of calls share a long tool prompt each,
everything else is sessions below one shared root block, whose follow-up turns extend their
predecessor. The parameters are fitted to Table 1: 23,608 requests, mean and P99 input 8,596 and
61,671 tokens, output 182 and 898, and 58.56 % reuse by an oracle. 400 seeds stayed within 0.7 %,
2.2 %, 0.2 %, 0.7 % and 0.4 points of these, in this order.
"""

from typing import NamedTuple

import numpy as np

from vertumnus.domain.units import SECOND, Nanoseconds, Tokens
from vertumnus.trace.drafts import BLOCK_TOKENS, NO_PARENT, Drafts, joined, to_rows
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.sampling import (
    Floats,
    Integers,
    exponential,
    gamma,
    lognormal,
    stratified,
    stream,
    systematic,
)

REQUESTS = 23_608
SESSIONS = 6_720
TICKS = 1_160
TICK_NS: Nanoseconds = 3_050_000_000
SPAN_S = (TICKS - 1) * TICK_NS / SECOND

AGENT_PROMPT, TOOL_PROMPT, ROOT = range(3)
"""The shared prefixes: of the first family, of the second, of every session."""
PROMPT_BLOCKS = (12, 5, 1)
FAMILY_SHARE = 0.75
"""Of the requests outside sessions, those with the longer prompt."""
LONGEST: Tokens = 126_000


class _Turn(NamedTuple):
    """The sessions that reach one turn: which, how long after their start, and how large."""

    session: Integers
    after_s: Floats
    input_tokens: Integers
    output_tokens: Integers
    parent: Integers


def tool_agent(seed: int) -> list[TraceRow]:
    """Return the trace of *seed* in order of arrival, in blocks of BLOCK_TOKENS tokens."""
    random = stream(seed, "tool_agent")
    sessions = _sessions(random)
    outside = REQUESTS - len(sessions.at_s)
    agents = round(FAMILY_SHARE * outside)
    requests = joined(sessions, _agent_calls(random, agents), _tool_calls(random, outside - agents))
    order = np.argsort(requests.at_s, kind="stable")
    # stamps by rank bend planned times by a few per cent, and keep the ticks exact
    return to_rows(requests, order, _stamps(random), PROMPT_BLOCKS)


def _sessions(random: np.random.Generator) -> Drafts:
    turns = [_first_turn(random)]
    placed = 0
    while len(turns[-1].session):
        turns.append(_next_turn(random, turns[-1], placed, is_second=len(turns) == 1))
        placed += len(turns[-2].session)
    session, after_s, input_tokens, output_tokens, parent = map(np.concatenate, zip(*turns, strict=True))
    lasts_s = np.zeros(SESSIONS)
    np.maximum.at(lasts_s, session, after_s)
    start_s = stratified(random, SESSIONS) * np.maximum(SPAN_S - lasts_s, 0.0)
    prompt = np.full(len(session), ROOT)
    return Drafts(start_s[session] + after_s, input_tokens, output_tokens, prompt, parent)


def _first_turn(random: np.random.Generator) -> _Turn:
    private = np.clip(lognormal(stratified(random, SESSIONS), 8.53, 1.242), 300, 125_000)
    return _Turn(
        session=np.arange(SESSIONS),
        after_s=np.zeros(SESSIONS),
        input_tokens=_prompt_tokens(ROOT) + private.astype(np.int64),
        output_tokens=_answer_tokens(random, SESSIONS),
        parent=np.full(SESSIONS, NO_PARENT),
    )


def _next_turn(random: np.random.Generator, turn: _Turn, placed: int, is_second: bool) -> _Turn:
    """Return the follow-ups of *turn*, whose first request is number *placed* of all."""
    chosen = _continuing(random, turn.input_tokens, is_second)
    added = 60 + np.minimum(exponential(stratified(random, len(chosen)), 900), 20_000).astype(np.int64)
    input_tokens = turn.input_tokens[chosen] + turn.output_tokens[chosen] + added
    pause_s = 15 + exponential(stratified(random, len(chosen)), 75)
    fits = input_tokens < LONGEST
    chosen = chosen[fits]
    return _Turn(
        session=turn.session[chosen],
        after_s=turn.after_s[chosen] + pause_s[fits],
        input_tokens=input_tokens[fits],
        output_tokens=_answer_tokens(random, len(chosen)),
        parent=placed + chosen,
    )


def _continuing(random: np.random.Generator, input_tokens: Integers, is_second: bool) -> Integers:
    """Return which requests of a turn get a follow-up, sampled evenly over the lengths."""
    by_length = np.argsort(input_tokens, kind="stable")
    second = np.where(input_tokens[by_length] < 6_000, 0.276, 0.326)
    return by_length[systematic(random, second if is_second else np.full(len(by_length), 0.48))]


def _answer_tokens(random: np.random.Generator, size: int) -> Integers:
    return np.minimum(2 + gamma(stratified(random, size), 3.4, 112.5), 3_000).astype(np.int64)


def _agent_calls(random: np.random.Generator, size: int) -> Drafts:
    private = np.minimum(30 + exponential(stratified(random, size), 480), 2_600)
    output = 10 + exponential(stratified(random, size), 25)
    output[systematic(random, np.full(size, 0.55))] = 3
    return _calls(random, AGENT_PROMPT, private, output)


def _tool_calls(random: np.random.Generator, size: int) -> Drafts:
    private = np.minimum(440 + exponential(stratified(random, size), 160), 2_000)
    return _calls(random, TOOL_PROMPT, private, 16 + exponential(stratified(random, size), 6))


def _calls(random: np.random.Generator, prompt: int, private: Floats, output: Floats) -> Drafts:
    size = len(private)
    return Drafts(
        at_s=stratified(random, size) * SPAN_S,
        input_tokens=_prompt_tokens(prompt) + private.astype(np.int64),
        output_tokens=output.astype(np.int64),
        prompt=np.full(size, prompt),
        parent=np.full(size, NO_PARENT),
    )


def _prompt_tokens(prompt: int) -> Tokens:
    return PROMPT_BLOCKS[prompt] * BLOCK_TOKENS


def _stamps(random: np.random.Generator) -> list[Nanoseconds]:
    """Return REQUESTS stamps on the ticks, 16 to 25 on each, drifting mildly over the hour [ns]."""
    drift = np.sin(2 * np.pi * (np.arange(TICKS) / TICKS + random.random()))
    weight = 1 + 0.06 * drift + random.uniform(-0.1, 0.1, TICKS)
    until = np.rint(np.cumsum(weight) / weight.sum() * REQUESTS).astype(np.int64)
    stamps = np.arange(TICKS, dtype=np.int64) * TICK_NS
    return np.repeat(stamps, np.diff(until, prepend=0)).tolist()
