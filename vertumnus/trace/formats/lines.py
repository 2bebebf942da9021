"""Lines of a trace file, plain or gzip; what is wrong with the file itself is told here."""

import gzip
import zlib
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from vertumnus.domain.errors import ConfigError

GZIP_MAGIC = b"\x1f\x8b"


class Line(NamedTuple):
    """One line of a file, counted from 1."""

    number: int
    text: bytes
    is_ended: bool
    """Whether a line end follows; the last line of a file that was cut has none."""


def numbered_lines(path: Path) -> Iterator[Line]:
    """Yield the lines of *path* that are not blank.

    Raises ConfigError when there is no such file, when it cannot be read, or when its gzip stream is
    cut or damaged; the message then names the last line that was whole.
    """
    number = 0
    try:
        with _open(path) as file:
            for number, text in enumerate(file, start=1):
                if text.strip():
                    yield Line(number, text, text.endswith(b"\n"))
    except FileNotFoundError:
        raise ConfigError(f"workload.path: no file {str(path)!r}{nearest_file(path)}") from None
    except EOFError:
        raise ConfigError(
            f"{path}:{number + 1}: the gzip stream ends early, after {number} whole lines: the file is cut"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ConfigError(f"{path}:{number + 1}: the gzip stream is damaged: {error}") from None
    except OSError as error:
        raise ConfigError(f"workload.path: cannot read {str(path)!r}: {error.strerror}") from None


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        is_gzip = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    return cast(BinaryIO, gzip.open(path)) if is_gzip else path.open("rb")


def nearest_file(path: Path) -> str:
    """Return what a message about a missing file at *path* can add: a name like it, or no such folder."""
    if not path.parent.is_dir():
        return f"; there is no folder {str(path.parent)!r} either"
    close = get_close_matches(path.name, sorted(entry.name for entry in path.parent.iterdir()), n=1)
    return f"; did you mean {str(path.with_name(close[0]))!r}?" if close else ""
