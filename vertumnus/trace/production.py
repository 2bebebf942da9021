"""Two workloads of a large service, generated: an hour of it (Table 1) and a whole day (Fig. 3).

Lengths are drawn first, each from its distribution by strata, so that every seed has the same lengths in
another order; then a share of the requests is made follow-ups of earlier ones, and most others begin
with the prompt of one of some applications. `production` is fitted to Table 1: 22,446 requests, mean and
P99 input 6,952 and 81,724 tokens, output 411 and 4,227, and 24.75 % reuse by an oracle. In every
hour of `production_day` requests above 32K tokens are 4-8 % of the arrivals and 32-54 % of the tokens,
and an oracle reuses 35-55 %; the rate varies more than threefold.
"""

from collections.abc import Callable

import numpy as np

from vertumnus.domain.units import SECOND, Tokens
from vertumnus.trace.drafts import BLOCK_TOKENS, Drafts, to_rows
from vertumnus.trace.kinship import parents
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.sampling import Floats, Integers, exponential, lognormal, stratified, stream, systematic

REQUESTS, SPAN_S = 22_446, 3_600.0
DAY_REQUESTS, DAY_S = 60_000, 86_400.0
"""A sample of the day's traffic; arrival.rate scales it."""
HOUR_S = 3_600.0

APPLICATIONS = 60
APPLICATION_SHARE = 0.8
"""Of the requests that continue nothing, those that come through an application."""
FOLLOW_UP_SHARE = 0.26
LONG: Tokens = 32_768
LONGEST: Tokens = 190_000
NOISE_S, NOISE = 30.0, 0.35
"""Correlation time and standard deviation of the logarithm of the rate [s]."""


def production(seed: int) -> list[TraceRow]:
    """Return the hour of *seed* in order of arrival, in blocks of BLOCK_TOKENS tokens."""
    random = stream(seed, "production")
    at_s = _arrivals(random, REQUESTS, SPAN_S, np.ones_like)
    input_tokens = np.clip(lognormal(stratified(random, REQUESTS), 7.656, 1.572), 40, LONGEST)
    return _related(random, at_s, input_tokens.astype(np.int64), np.full(REQUESTS, FOLLOW_UP_SHARE))


def production_day(seed: int) -> list[TraceRow]:
    """Return the day of *seed* from midnight, in order of arrival, in blocks of BLOCK_TOKENS tokens."""
    random = stream(seed, "production_day")
    at_s = _arrivals(random, DAY_REQUESTS, DAY_S, lambda time_s: 1 + 0.58 * _daily(time_s, 15))
    is_long = np.zeros(DAY_REQUESTS, dtype=bool)
    is_long[systematic(random, 0.06 + 0.012 * _daily(at_s, 4))] = True
    input_tokens = np.empty(DAY_REQUESTS, dtype=np.int64)
    longs = int(is_long.sum())
    input_tokens[is_long] = np.minimum(LONG + 1 + exponential(stratified(random, longs), 25_000), LONGEST)
    shorts = lognormal(stratified(random, DAY_REQUESTS - longs), 7.8, 1.2)
    input_tokens[~is_long] = np.clip(shorts, 40, LONG)
    return _related(random, at_s, input_tokens, 0.54 + 0.06 * _daily(at_s, 11))


def _daily(time_s: Floats, peak_hour: float) -> Floats:
    """Return a wave of one day's length from -1 to 1 that peaks at *peak_hour*."""
    wave: Floats = np.cos(2 * np.pi * (time_s / HOUR_S - peak_hour) / 24)
    return wave


def _arrivals(
    random: np.random.Generator, size: int, span_s: float, rate: Callable[[Floats], Floats]
) -> Floats:
    """Return *size* ascending times of a Poisson process with *rate*, up to a factor, and noise on it [s]."""
    seconds = np.arange(0.0, span_s + 1)
    weight = rate(seconds[:-1]) * np.exp(_noise(random, len(seconds) - 1))
    until = np.concatenate([[0.0], np.cumsum(weight) / weight.sum()])
    times: Floats = np.interp(np.sort(random.random(size)), until, seconds)
    return times


def _noise(random: np.random.Generator, size: int) -> Floats:
    """Return a normal process of seconds with standard deviation NOISE that forgets within NOISE_S."""
    kept = np.exp(-1 / NOISE_S)
    steps = random.normal(0, NOISE * np.sqrt(1 - kept**2), size)
    level, levels = random.normal(0, NOISE), np.empty(size)
    for second, step in enumerate(steps.tolist()):
        level = kept * level + step
        levels[second] = level
    return levels


def _related(
    random: np.random.Generator, at_s: Floats, input_tokens: Integers, follow_up_share: Floats
) -> list[TraceRow]:
    """Give requests their answers and what they share, and return them as rows."""
    size = len(at_s)
    output_tokens = np.minimum(5 + lognormal(stratified(random, size), 4.992, 1.443), 9_000).astype(np.int64)
    message_tokens = lognormal(stratified(random, size), 4.5, 1.0).astype(np.int64)
    is_follow_up = np.zeros(size, dtype=bool)
    by_length = np.lexsort((input_tokens, at_s // HOUR_S))  # within each hour
    is_follow_up[by_length[systematic(random, follow_up_share[by_length])]] = True
    parent = parents(at_s, input_tokens, output_tokens, message_tokens, is_follow_up)
    prompts = _application_prompts()
    prompt = _applications(random, input_tokens, prompts)
    drafts = Drafts(at_s, input_tokens, output_tokens, prompt, parent)
    stamps = np.rint(at_s * 1_000).astype(np.int64) * (SECOND // 1_000)
    return to_rows(drafts, np.arange(size), stamps.tolist(), [*(prompts // BLOCK_TOKENS).tolist(), 0])


def _application_prompts() -> Integers:
    """Return the length of each application's prompt, the most used one first: the same for every seed."""
    places = (np.arange(APPLICATIONS) * 37 % APPLICATIONS + 0.5) / APPLICATIONS  # 37: no order in the lengths
    return np.minimum(lognormal(places, 6.3, 0.9), 6_000).astype(np.int64)


def _applications(random: np.random.Generator, input_tokens: Integers, prompts: Integers) -> Integers:
    """Return each request's application by Zipf's law, or the place after them for none."""
    popularity = 1 / np.arange(1, APPLICATIONS + 1) ** 1.1
    until = np.cumsum(popularity) / popularity.sum() * APPLICATION_SHARE
    application = np.searchsorted(until, stratified(random, len(input_tokens)), side="right")
    lengths = np.append(prompts, 0)
    return np.where(lengths[application] < input_tokens, application, APPLICATIONS)
