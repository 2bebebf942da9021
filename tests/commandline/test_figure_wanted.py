"""The words of ``figures`` name tables and figures of the paper."""

import pytest

from vertumnus.commandline.figure_wanted import chosen
from vertumnus.domain.errors import ConfigError
from vertumnus.report.paper.catalogue import ENTRIES


def test_entries_are_chosen_in_the_papers_order() -> None:
    """Whatever the order of the words; unknown ones are all named."""
    assert [entry.name for entry in chosen(["figure13", "table1"])] == ["table1", "figure13"]
    assert chosen([]) == list(ENTRIES)
    with pytest.raises(ConfigError, match="figure1: no such table or figure") as found:
        chosen(["figure1", "tabel2"])
    assert len(found.value.problems) == 2


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("figure7", "figures7-9"),
        ("figure9", "figures7-9"),
        ("figure10", "figures10-12"),
        ("figure13", "figure13"),
    ],
)
def test_a_figure_of_several_is_named_by_itself_too(name: str, entry: str) -> None:
    """The paper has each of them under a number of its own."""
    assert [each.name for each in chosen([name])] == [entry]
