"""What comes from the terminal: a byte that is no UTF-8, as of a pasted file, is a sign like any other.

Textual's driver makes a strict decoder of it, which ends the program in a traceback. To start its reading
anew instead would take the rest of a paste for keys, of which some act on the run.
"""

from codecs import getincrementaldecoder
from functools import partial
from typing import Any

from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver


def _lenient(encoding: str) -> Any:
    return partial(getincrementaldecoder(encoding), errors="replace")


class TerminalDriver(LinuxDriver):
    """Textual's driver, which takes any bytes."""

    def run_input_thread(self) -> None:
        """Read the terminal until it is closed."""
        # the name by which it makes its decoder
        linux_driver.getincrementaldecoder = _lenient  # type: ignore[attr-defined]
        super().run_input_thread()
