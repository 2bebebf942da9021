"""Build the wheel, install it into a fresh environment, and run it from another folder (make wheel-check)."""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Return 0 when the installed wheel runs; the failing command's output is on the terminal."""
    with tempfile.TemporaryDirectory(prefix="vertumnus-wheel-") as folder:
        place = Path(folder)
        run([sys.executable, "-m", "build", "--wheel", "--outdir", str(place / "dist"), str(ROOT)], ROOT)
        (wheel,) = (place / "dist").glob("*.whl")
        python = fresh_environment(place / "venv")
        elsewhere = place / "elsewhere"
        elsewhere.mkdir()
        pip = [str(python), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt")]
        run([*pip, str(wheel)], elsewhere)
        check_base(python.parent / "vertumnus", elsewhere)
        run([*pip, f"{wheel}[live]"], elsewhere)
        check_live(python.parent / "vertumnus", elsewhere)
    print("wheel-check: the installed wheel simulates, executes and reports from another folder")
    return 0


def check_base(command: Path, folder: Path) -> None:
    """Run the base install: configs found, a simulated run, reports, and a plain word for what is missing."""
    run([str(command), "ls", "experiment"], folder)
    run([str(command), "+experiment=tool_agent", "backend=sim", "workload.requests=200"], folder)
    run([str(command), "sql", "SELECT count(*) FROM requests", "--csv"], folder)
    run([str(command), "audit"], folder)
    check_refusal([str(command), "+experiment=tool_agent"], "vertumnus[live]", folder)
    check_refusal([str(command), "console"], "vertumnus[console]", folder)


def check_refusal(words: list[str], extra: str, folder: Path) -> None:
    """Run *words*, which need *extra*: they are refused with its name."""
    refused = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if refused.returncode != 2 or extra not in refused.stderr:
        raise SystemExit(f"{words} without {extra}: exit {refused.returncode}\n{refused.stderr}")


def check_live(command: Path, folder: Path) -> None:
    """Run the install with the live engine."""
    words = ["+experiment=tool_agent", "model=nano", "workload.requests=60", "arrival.rate=20"]
    run([str(command), *words], folder, allowed=(0, 3))  # a busy machine may send late: INVALID


def fresh_environment(place: Path) -> Path:
    """Make an environment at *place* and return its Python."""
    venv.create(place, with_pip=True)
    return place / "bin" / "python"


def run(words: list[str], folder: Path, allowed: tuple[int, ...] = (0,)) -> None:
    """Run *words* in *folder*; anything but an *allowed* exit code ends the check."""
    print("$", " ".join(words), flush=True)
    code = subprocess.run(words, cwd=folder, check=False).returncode
    if code not in allowed:
        raise SystemExit(f"exit {code}: {' '.join(words)}")


if __name__ == "__main__":
    raise SystemExit(main())
