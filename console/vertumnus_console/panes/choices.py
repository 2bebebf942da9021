"""Recent placements with their terms: why this worker?"""

from textual.content import Content

from vertumnus.domain.units import Nanoseconds, to_seconds
from vertumnus.policy.placement import Decision, Offer
from vertumnus_console.looks.decisions import decisions, runner_up
from vertumnus_console.panes.table import Column, Table
from vertumnus_console.player import Look, Snapshot
from vertumnus_console.words import UNDEFINED, brief, clock, duration

COLUMNS = (
    Column("at", 10, is_right=True),
    Column("request", 8, is_right=True),
    Column(" worker", 7),
    Column("P", 7, is_right=True),
    Column("q", 8, is_right=True),
    Column("s", 8, is_right=True),
    Column("gpu", 8, is_right=True),
    Column("J", 8, is_right=True),
    Column(" next", 7),
    Column("margin", 7, is_right=True),
)


class ChoicesPane(Table):
    """The screen that answers: why did it go there?"""

    LOOK = Look("choices", decisions)

    def __init__(self, *, id: str) -> None:
        super().__init__(COLUMNS, id=id)
        self._decisions: tuple[Decision, ...] = ()

    def show(self, snapshot: Snapshot) -> None:
        """Draw *snapshot*."""
        if snapshot.looked is not None and snapshot.looked.name == self.LOOK.name:
            self._decisions = snapshot.looked.content
            self.fill([row(decision) for decision in self._decisions])

    @property
    def pointed(self) -> Decision | None:
        """The placement under the cursor."""
        return self._decisions[self.cursor_row] if self.cursor_row < len(self._decisions) else None


def row(decision: Decision) -> tuple[str, ...]:
    """Return the cells of *decision*."""
    head = (clock(decision.at), str(decision.request_id))
    if decision.chosen is None:
        return (*head, " nobody", *[UNDEFINED] * 5, "", UNDEFINED)
    offer, cost = decision.offers[decision.chosen], decision.costs[decision.chosen]
    second = runner_up(decision)
    other = None if second is None else decision.costs[second]
    return (
        *head,
        f" {offer.worker}",
        brief(offer.cached_tokens),
        *_terms(offer, cost),
        "" if second is None else f" {decision.offers[second].worker}",
        UNDEFINED if other is None or cost is None else _time(other - cost),
    )


def told(decision: Decision) -> Content:
    """Return every candidate of *decision* with its terms, cheapest first, and who was left out."""
    order = sorted(range(len(decision.offers)), key=lambda place: _cost(decision, place))
    lines = [
        f"request {decision.request_id}, attempt {decision.attempt}, at {clock(decision.at)}",
        "",
        "worker".ljust(9) + "".join(name.rjust(10) for name in ("P", "q", "s", "extra gpu", "J")),
    ]
    for place in order:
        offer, mark = decision.offers[place], "  <- chosen" if place == decision.chosen else ""
        terms = (brief(offer.cached_tokens), *_terms(offer, decision.costs[place]))
        lines.append(str(offer.worker).ljust(9) + "".join(term.rjust(10) for term in terms) + mark)
    if decision.excluded:
        lines += ["", "no candidates"]
        lines += [f"{worker}".ljust(9) + reason for worker, reason in decision.excluded]
    return Content("\n".join(lines))


def _cost(decision: Decision, place: int) -> tuple[bool, Nanoseconds]:
    cost = decision.costs[place]
    return cost is None, cost or 0


def _terms(offer: Offer, cost: Nanoseconds | None) -> tuple[str, ...]:
    return (_time(offer.queue_ns), _time(offer.service_ns), _time(offer.extra_gpu_ns), _time(cost))


def _time(span: Nanoseconds | None) -> str:
    if span is not None and span < 0:
        return f"-{duration(to_seconds(-span))}"
    return duration(None if span is None else to_seconds(span))
