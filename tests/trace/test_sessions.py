"""Which row continues which, by the trace's sessions or by what its prompts begin with."""

from tests.support.traces import a_row
from vertumnus.trace.generators import SEEDED
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.sessions import predecessors


def _turn(session: str | None, follows: str | None) -> TraceRow:
    return a_row()._replace(session=session, follows=follows)


def test_sessions_name_the_turn_before() -> None:
    """A session's rows follow one another; a branch follows the chat that it names, if it is there."""
    rows = [
        _turn("a", "a"),
        _turn("b", "b"),
        _turn("a", "a"),
        _turn("c", "a"),
        _turn("a", "a"),
        _turn("d", "x"),
    ]
    assert predecessors(rows, 512) == [None, None, 0, 2, 2, None]
    assert predecessors([_turn(None, None), _turn("a", "a")], 512) == [None, None]


def test_prompts_continue_what_they_begin_with() -> None:
    """Blocks of 4: the second prompt has all whole blocks of the first and more."""
    first, second = a_row(0, 10, 1, (0, 1, 2)), a_row(1, 18, 1, (0, 1, 3, 4, 5))
    third = a_row(2, 22, 1, (0, 1, 3, 4, 6, 7))
    assert predecessors([first, second, third], 4) == [None, 0, 1]


def test_a_prompt_that_many_share_is_nobodys_turn() -> None:
    """Agents with a common prompt of two blocks and a private partial one, and a repeated prompt."""
    agents = [a_row(n, 10, 1, (0, 1, 10 + n)) for n in range(3)]
    assert predecessors(agents, 4) == [None, None, None]
    longer = a_row(4, 15, 1, (0, 1, 20, 21))  # extends the first one's whole blocks, which were new then
    assert predecessors([*agents, longer, longer], 4) == [None, None, None, 0, None]


def test_prefixes_find_what_generators_name() -> None:
    """Without sessions nine in ten turns are found; a turn that adds less than a block leaves no mark."""
    rows = SEEDED["production"](0)
    told = predecessors(rows, 512)
    found = predecessors([row._replace(session=None, follows=None) for row in rows], 512)
    turns = [place for place, before in enumerate(told) if before is not None]
    whole = [place for place in turns if rows[told[place] or 0].input_tokens >= 2_048]
    assert len(turns) > 4_500 and len(whole) > 2_000
    same = sum(found[place] == told[place] for place in whole)
    assert same > 0.9 * len(whole)
