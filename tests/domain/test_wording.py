"""Numbers of things in messages."""

import pytest

from vertumnus.domain.wording import counted


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (12_345, "12,345 rows"), (-1, "-1 rows")]
)
def test_only_one_is_singular(number: int, said: str) -> None:
    """None and several take the plural, large numbers commas."""
    assert counted(number, "row") == said


def test_a_plural_of_its_own() -> None:
    """A noun that takes more than an s says so, and only several of it."""
    assert counted(1, "copy", "copies") == "1 copy"
    assert counted(3, "copy", "copies") == "3 copies"
