"""What a screen knows of its run before it has read the log."""

from typing import NamedTuple

from vertumnus.records.log import LogHeader


class Shown(NamedTuple):
    """The run that a screen shows."""

    run_id: str
    name: str
    """Of its experiment."""
    header: LogHeader

    @property
    def execution(self) -> str:
        """Whether the prefills are computed or only timed."""
        return "simulated" if self.header.backend == "sim" else "executed"

    def part(self, name: str) -> str:
        """Return what the run has for a part of its configuration: "paper" for "policy"."""
        return str(self.header.config.get(name, {}).get("name", ""))
