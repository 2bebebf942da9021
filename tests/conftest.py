"""Settings that all tests share."""

import pytest
from hypothesis import settings

from vertumnus.actions import client

# a deadline measures the machine's other work, not ours
settings.register_profile("vertumnus", deadline=None)
settings.load_profile("vertumnus")

# so does the patience of a console with a run that does not greet it
client.CONNECT_S = 60.0

LONG_S = 900
"""What a test marked long may take, however it is started; the others have what pyproject.toml says [s]."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test marked long, where it does not say otherwise, its own time."""
    for item in items:
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONG_S))
