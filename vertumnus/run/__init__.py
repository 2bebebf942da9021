"""One run from its config to its tables: the plan, the simulated run, the live run."""

from vertumnus.run.asked import Asked
from vertumnus.run.execute import Outcome, execute
from vertumnus.run.plan import plan

__all__ = ["Asked", "Outcome", "execute", "plan"]
