"""An engine that does nothing and tells nothing: for loops whose events come from elsewhere."""

from vertumnus.domain.facts import InputFact
from vertumnus.domain.jobs import AnyJob, AnyOutcome
from vertumnus.domain.units import Nanoseconds


class SilentEngine:
    """What is scheduled or submitted never comes: who gives the loop its events has them already."""

    def now(self) -> Nanoseconds:
        """Return 0: events bring their own times."""
        return 0

    def schedule(self, fact: InputFact, at_ns: Nanoseconds) -> None:
        """Leave *fact* to whoever gives the events."""
        del fact, at_ns

    def submit(self, job: AnyJob) -> None:
        """Leave *job* to whoever gives the events."""
        del job

    def next(self) -> InputFact | AnyOutcome | None:
        """Return None: nothing is to come."""
        return None

    def post(self, fact: InputFact) -> None:
        """Leave *fact* to whoever gives the events."""
        del fact

    def close(self) -> None:
        """Nothing was started."""
