"""Where config files lie: in the package, and in the user's ./conf when there is one."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

GROUPS = (
    "experiment",
    "cell",
    "workload",
    "model",
    "cluster",
    "policy",
    "controller",
    "initial",
    "correction",
    "admission",
    "backend",
    "profile",
    "arrival",
    "scale",
    "slo",
    "cache",
    "records",
)
"""The config groups that come with Vertumnus, in the order of ``vertumnus ls``."""


def packaged_folder() -> Traversable:
    """Return the folder of the configs that come with Vertumnus."""
    return files("vertumnus.conf")


def user_folder() -> Path | None:
    """Return ./conf if it holds configs of the user's; this project's own checkout has none."""
    folder = Path("conf")
    is_checkout = Path("vertumnus", "domain").is_dir()
    return folder if not is_checkout and any(folder.glob("**/*.yaml")) else None


def replaced_files(folder: Path) -> list[str]:
    """Return the files of *folder* that take the place of a packaged one, as paths below it."""
    below = sorted(path.relative_to(folder) for path in folder.glob("**/*.yaml"))
    return [str(path) for path in below if packaged_folder().joinpath(*path.parts).is_file()]
