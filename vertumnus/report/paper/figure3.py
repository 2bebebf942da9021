"""Fig. 3: a day of production by the hour."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from vertumnus.report.paper.chapter import Chapter, Claim, Runs, by, mean_of
from vertumnus.report.paper.panels import Panel, Picture, Series

EXPERIMENT = "production_day"
SAYS = (
    "Long requests (above 32K tokens) are 4 to 8 % of the arrivals and 32 to 54 % of the tokens; the rate "
    "changes more than threefold over the day; prefix hits cover 35 to 55 % of the tokens."
)
CAUSES = (
    "The day is a generator fitted to these bands, a sample of a day's requests. Hits of the pool depend on "
    "its caches and on routing; the unlimited cache beside them does not.",
    "Extremes of single hours scatter with the sample: an hour of the night has few long requests.",
)
Rows = Sequence[Mapping[str, Any]]


def chapter(runs: Runs) -> Chapter:
    """Return the chapter of Fig. 3."""
    rows = runs.answer("figure3", runs.of(EXPERIMENT))
    days = list(by(rows, "seed").values())
    claims = [
        *_ends("long requests, of all arrivals", "long_requests", (0.04, 0.08), days),
        *_ends("long requests, of all tokens", "long_tokens", (0.32, 0.54), days),
        Claim(
            "busiest hour against the quietest",
            "x",
            (3.0, inf),
            mean_of(_most(day, "requests") / _least(day, "requests") for day in days),
        ),
        *_ends("tokens that hit a prefix", "hit_rate", (0.35, 0.55), days),
    ]
    return Chapter(SAYS, claims, (), [_picture(rows)] if rows else [], CAUSES)


def _ends(what: str, column: str, stated: tuple[float, float], days: Sequence[Rows]) -> list[Claim]:
    """Return the claims that the lowest and the highest hour of the day are within what is *stated*."""
    return [
        Claim(f"{what}, lowest hour", "share", stated, mean_of(_least(day, column) for day in days)),
        Claim(f"{what}, highest hour", "share", stated, mean_of(_most(day, column) for day in days)),
    ]


def _least(day: Rows, column: str) -> float:
    return float(min(row[column] for row in day))


def _most(day: Rows, column: str) -> float:
    return float(max(row[column] for row in day))


def _picture(rows: Rows) -> Picture:
    hours = by(rows, "hour")
    x = list(hours)

    def share(label: str, column: str) -> Series:
        means = [mean_of(row[column] for row in of_hour) for of_hour in hours.values()]
        return Series(label, x, [None if mean is None else 100 * mean.mean for mean in means])

    busiest = max(sum(row["requests"] for row in of_hour) / len(of_hour) for of_hour in hours.values())
    rate = [100 * sum(row["requests"] for row in of) / len(of) / busiest for of in hours.values()]
    time = "hour of the day [h]"
    return Picture(
        "figure3",
        "A day of production, means over seeds",
        [
            Panel(
                "(a) long requests",
                time,
                "share [%]",
                [share("of requests", "long_requests"), share("of input tokens", "long_tokens")],
                from_zero=True,
            ),
            Panel(
                "(b) arrivals", time, "of the busiest hour [%]", [Series("arrivals", x, rate)], from_zero=True
            ),
            Panel(
                "(c) prefix hits",
                time,
                "share of input tokens [%]",
                [share("hits in the pool", "hit_rate"), share("unlimited cache", "oracle_hit_rate")],
                from_zero=True,
            ),
        ],
    )
