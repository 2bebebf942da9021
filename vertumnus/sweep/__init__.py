"""Many runs of one command: which of them are to do, their processes, and the table of all."""

from vertumnus.sweep.job import Ending, Job
from vertumnus.sweep.sweep import Sweep, id_of, run_sweep, runs_there

__all__ = ["Ending", "Job", "Sweep", "id_of", "run_sweep", "runs_there"]
