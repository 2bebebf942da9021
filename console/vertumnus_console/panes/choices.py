"""Recent placements with their terms: why this worker? Times are milliseconds here."""

from textual.content import Content

from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.placement import Decision, Offer
from vertumnus.policy.policies.rules import cost_unit, policy_name, weights
from vertumnus.policy.policies.why import runner_up, why
from vertumnus_console.folds import Choice
from vertumnus_console.looks.decisions import decisions
from vertumnus_console.panes.table import Column, Table
from vertumnus_console.player import Look, Snapshot
from vertumnus_console.words import UNDEFINED, brief, clock, cropped

COLUMNS = (
    Column("at", 9, is_right=True),
    Column("request", 8, is_right=True),
    Column(" to", 7),
    Column("P", 6, is_right=True),
    Column("wait", 7, is_right=True),
    Column("service", 8, is_right=True),
    Column("gpu", 6, is_right=True),
    Column("others", 7, is_right=True),
    Column("cost", 7, is_right=True),
    Column(" next best", 13, is_wide=True),
)
TERMS = ("P", "pend", "pulled", "wait", "beta*s", "gpu", "others", "cost")
WIDTHS = (7, 5, 10, 7, 7, 6, 7, 8)


class ChoicesPane(Table):
    """The screen that answers: why did it go there?"""

    LOOK = Look("choices", decisions)

    def __init__(self, *, id: str) -> None:
        super().__init__(COLUMNS, "no request was placed so far", id=id)
        self._choices: tuple[Choice, ...] = ()

    def show(self, snapshot: Snapshot) -> None:
        """Draw *snapshot*."""
        if snapshot.looked is not None and snapshot.looked.name == self.LOOK.name:
            self._choices = snapshot.looked.content
            self.fill([row(choice) for choice in self._choices])

    @property
    def pointed(self) -> Choice | None:
        """The placement under the cursor."""
        return self._choices[self.cursor_row] if self.cursor_row < len(self._choices) else None


def row(choice: Choice) -> tuple[str, ...]:
    """Return the cells of *choice*."""
    decision = choice.decision
    head = (clock(decision.at), str(decision.request_id))
    if decision.chosen is None:
        return (*head, " nobody", *[UNDEFINED] * 6, "")
    offer, cost = decision.offers[decision.chosen], decision.costs[decision.chosen]
    terms = weighted(choice, offer)
    return (
        *head,
        f" {offer.worker}",
        brief(offer.cached_tokens),
        _ms(offer.queue_ns),
        _ms(offer.service_ns),
        _ms(None if terms is None else terms[1]),
        _ms(offer.externality_ns),
        _cost(choice, cost),
        _next(choice, cost),
    )


def told(choice: Choice) -> Content:
    """Return every candidate with its terms, cheapest first, and who was left out and why."""
    decision = choice.decision
    order = sorted(range(len(decision.offers)), key=lambda place: _rank(decision, place))
    charged = weights(choice.policy)
    how = "" if charged is None else f", beta {charged[0]:g}, lambda {charged[1]:g}"
    unit = cost_unit(choice.policy)
    lines = [
        Content(f"request {decision.request_id}, placed at {clock(decision.at)}, attempt {decision.attempt}"),
        Content(f"policy {policy_name(choice.policy)}{how}; times in ms{_unit(unit)}"),
        Content(why(choice.policy, decision)),
        Content(""),
        Content.styled(_columns("worker", *TERMS), "bold"),
        *(_candidate(choice, place) for place in order),
    ]
    if choice.dearer:
        lines.append(Content(f"and {choice.dearer} that cost more: vertumnus explain has them all"))
    if decision.excluded:
        lines.append(Content(""))
        lines += [Content(f"{worker!s:<7}left out: {reason}") for worker, reason in decision.excluded]
    return Content("\n").join(lines)


def weighted(choice: Choice, offer: Offer) -> tuple[Nanoseconds, Nanoseconds] | None:
    """Return beta*s and the GPU-time term of *offer* [ns]; None under a policy without them."""
    charged = weights(choice.policy)
    if charged is None:
        return None
    return round(charged[0] * offer.service_ns), round(charged[1] * offer.extra_gpu_ns)


def _candidate(choice: Choice, place: int) -> Content:
    decision = choice.decision
    offer, terms = decision.offers[place], weighted(choice, decision.offers[place])
    line = _columns(
        str(offer.worker),
        brief(offer.cached_tokens),
        str(offer.pending_blocks or ""),
        _pulled(offer),
        _ms(offer.queue_ns),
        _ms(offer.service_ns if terms is None else terms[0]),
        _ms(None if terms is None else terms[1]),
        _ms(offer.externality_ns),
        _cost(choice, decision.costs[place]),
    )
    if place == decision.chosen:
        return Content.assemble((f"{line} chosen", "bold $text-success"))
    if place == runner_up(decision):
        return Content.assemble(line, (" next best", "$text-accent"))
    return Content(line + (" not allowed" if decision.costs[place] is None else ""))


def _columns(worker: str, *cells: str) -> str:
    return f"{worker:<7}" + "".join(cell.rjust(width) for cell, width in zip(cells, WIDTHS, strict=True))


def _next(choice: Choice, cost: int | None) -> str:
    """Return the second best worker and by how much it is."""
    decision = choice.decision
    second = runner_up(decision)
    if second is None or cost is None:
        return ""
    other = decision.costs[second]
    return f" {decision.offers[second].worker} +{_cost(choice, None if other is None else other - cost)}"


def _pulled(offer: Offer) -> str:
    pull = offer.pull
    if pull is None:
        return ""
    return cropped(f"{pull.blocks - pull.first_block}<{pull.source or 'coming'}", WIDTHS[2] - 1)


def _rank(decision: Decision, place: int) -> tuple[bool, int]:
    cost = decision.costs[place]
    return cost is None, cost or 0


def _cost(choice: Choice, cost: int | None) -> str:
    return _ms(cost) if cost is None or cost_unit(choice.policy) == "ns" else brief(cost)


def _unit(unit: str) -> str:
    return "" if unit == "ns" else f", cost in {unit}"


def _ms(span: Nanoseconds | None) -> str:
    return UNDEFINED if span is None else f"{span / 1e6:.0f}"
