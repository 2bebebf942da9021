"""What keeps the repository's own words true: README, packages, imports."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from vertumnus.cli import VERBS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_readme_tree_is_the_tree() -> None:
    """Every package and top folder has one line in the README's tree, and every line is there."""
    tree = README.split("## Where things are")[1].split("```")[1]
    told = {
        name.strip()
        for line in tree.strip().splitlines()
        for name in re.split(r"  +", line.strip())[0].split(",")
    }
    packages = {
        f"{path.name}/"
        for path in (ROOT / "vertumnus").iterdir()
        if path.is_dir() and (path / "__init__.py").exists()
    }
    missing = packages - told
    assert not missing, f"not in the README's tree: {sorted(missing)}"
    for name in told - {"vertumnus/", "cli.py"}:
        assert (ROOT / name).exists() or (ROOT / "vertumnus" / name).exists(), f"{name} is not in the tree"


def test_readme_names_every_make_target() -> None:
    """A target that the Makefile offers is told in the README."""
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert len(targets) >= 10
    missing = [target for target in targets if f"make {target}" not in README and target != "help"]
    assert not missing


def test_readme_names_every_verb() -> None:
    """A verb of the command line is told in the README."""
    assert not [verb for verb in VERBS if f"vertumnus {verb}" not in README]


def test_every_package_is_in_the_wheel() -> None:
    """A folder with an __init__.py below a mapped package is listed for setuptools, and nothing else is."""
    setup = PROJECT["tool"]["setuptools"]
    found = set()
    for name, folder in setup["package-dir"].items():
        for init in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join([name, *init.parent.relative_to(ROOT / folder).parts]))
    groups = {path.parent.relative_to(ROOT / "conf").parts for path in (ROOT / "conf").glob("*/**/*.yaml")}
    found |= {".".join(("vertumnus.conf", *group)) for group in groups}
    assert found == set(setup["packages"])


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        (
            "vertumnus.policy.control_plane",
            {"torch", "numpy", "hydra", "omegaconf", "duckdb", "pyarrow", "rich", "asyncio", "threading"},
        ),
        ("vertumnus.workers.fleet", {"torch", "numpy", "hydra", "duckdb", "pyarrow", "asyncio"}),
        ("vertumnus.forecast.child", {"torch", "zmq", "scipy", "hydra", "duckdb", "pyarrow", "rich"}),
        ("vertumnus.run.simulated", {"torch", "zmq", "scipy", "hydra"}),
        ("vertumnus.cli", {"torch", "hydra", "duckdb", "pyarrow", "numpy"}),
    ],
)
def test_what_an_import_brings_along(module, unwanted) -> None:
    """The pure half loads nothing heavy, a simulated run no torch, the bare command nothing at all."""
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not unwanted & set(loaded)


def test_no_machine_in_the_repository() -> None:
    """No tracked file names a folder of one machine."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    pattern = re.compile("/" + r"(work|root|farm)/")
    named = [
        name
        for name in listed.stdout.splitlines()
        if (ROOT / name).is_file() and pattern.search((ROOT / name).read_text(errors="ignore"))
    ]
    assert not named
