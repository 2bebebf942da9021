"""One run from its config to its tables: the plan, the simulated run, the live run."""

from vertumnus.run.execute import Outcome, execute
from vertumnus.run.plan import plan

__all__ = ["Outcome", "execute", "plan"]
