"""Views of the tables in the names of other benchmarks, so that their scripts read our runs."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

ALIASES = ("vllm_bench", "aiperf")
"""In the names of vLLM's serving benchmark and of AIPerf; seconds become what those count in."""


@cache
def alias_sql(name: str) -> str:
    """Return the statement of view *name*, one of `ALIASES`."""
    return files("vertumnus.report.aliases").joinpath(f"{name}.sql").read_text(encoding="utf-8")


def aliases_in(sql: str) -> Mapping[str, str]:
    """Return the statements of the views that *sql* names, by name."""
    return {name: alias_sql(name) for name in ALIASES if name in sql.lower()}
