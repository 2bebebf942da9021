"""Fetching published trace files: resumed where it stopped, checked, and in place only when whole."""

import hashlib
import os
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from vertumnus.domain.errors import ConfigError, VertumnusError
from vertumnus.domain.wording import counted

CHUNK_BYTES = 1 << 20
TIMEOUT_S = 30.0
LFS_POINTER = b"version https://git-lfs"
GOES_ON = "what has come is kept, the next try goes on from there"
Tell: TypeAlias = Callable[[int, int | None], object]
"""Is told the bytes so far, and of the whole where that is known."""


class DownloadFailed(VertumnusError):
    """The network's or the disk's fault; what has come is kept, and the next try goes on from there."""


class Downloaded(NamedTuple):
    """A file that is in place."""

    path: Path
    payload_bytes: int
    sha256: str
    is_pinned: bool
    """Whether the checksum was known before, by the config or by an earlier download."""


def download(url: str, path: Path, sha256: str | None, tell: Tell) -> Downloaded:
    """Fetch *url* to *path*, or only check the file that is there, and return what is in place.

    The checksum must be *sha256* or, without one, that of the first time, which is kept beside the file.
    Raises ConfigError for a checksum or an address that is wrong, DownloadFailed when the file could
    not be had.
    """
    wanted = sha256 or _seen_before(path)
    try:
        if path.is_file():
            found = _require(path, wanted, f"remove {path} to fetch it anew")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            found = _fetched(url, path, wanted, tell)
        if wanted is None:
            _pin(path).write_text(f"{found}  {path.name}\n")
    except (OSError, HTTPException) as error:
        raise DownloadFailed(f"{url}: {_reason(error)}; {GOES_ON}") from None
    return Downloaded(path, path.stat().st_size, found, wanted is not None)


def _fetched(url: str, path: Path, wanted: str | None, tell: Tell) -> str:
    """Put *url* at *path* if it is what is *wanted*, and return its checksum; else nothing of it stays."""
    _fetch(url, path, tell)
    part = _part(path)
    try:
        with part.open("rb") as file:
            if file.read(len(LFS_POINTER)) == LFS_POINTER:
                raise ConfigError(f"{url}: gives a pointer of Git LFS, not the file that it points to")
        found = _require(part, wanted, f"nothing of {url} was kept")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
        _validator(path).unlink(missing_ok=True)
    return found


def _fetch(url: str, path: Path, tell: Tell) -> None:
    """Bring the whole of *url* into the part file, after what is there of it."""
    part = _part(path)
    have = part.stat().st_size if part.is_file() and _validator(path).is_file() else 0
    try:
        response = _open(url, have, _validator(path).read_text() if have else "")
    except HTTPError as error:
        if error.code == 416 and have:  # no byte is there behind what has come: another content
            part.unlink()
            return _fetch(url, path, tell)
        raise ConfigError(f"{url}: the server answers {error.code} {error.reason}") from None
    start = have if response.status == 206 else 0
    with response, part.open("ab" if start else "wb") as file:
        validator = response.headers.get("ETag") or response.headers.get("Last-Modified")
        if validator:  # without one nobody can tell later whether the rest belongs to what is there
            _validator(path).write_text(validator)
        length = response.headers.get("Content-Length")
        _copy(response, file, start, None if length is None else start + int(length), tell)


def _open(url: str, have: int, validator: str) -> HTTPResponse:
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"url: found {url!r}, must begin with http:// or https://")
    headers = {"User-Agent": "vertumnus"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": validator}
    response: HTTPResponse = urlopen(Request(url, headers=headers), timeout=TIMEOUT_S)
    return response


def _copy(response: HTTPResponse, file: BinaryIO, start: int, total: int | None, tell: Tell) -> None:
    have = start
    while chunk := response.read(CHUNK_BYTES):
        file.write(chunk)
        have += len(chunk)
        tell(have, total)
    file.flush()
    os.fsync(file.fileno())
    if total is not None and have < total:
        raise DownloadFailed(
            f"{response.url}: it ended after {have:,} of {counted(total, 'byte')}; {GOES_ON}"
        )


def _require(path: Path, wanted: str | None, otherwise: str) -> str:
    """Return the checksum of *path*. Raises ConfigError when it is not the *wanted* one."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if wanted is not None and found != wanted:
        raise ConfigError(
            f"sha256: found {found}, must be {wanted}; {otherwise}, or give sha256={found} if this is meant"
        )
    return found


def _seen_before(path: Path) -> str | None:
    pin = _pin(path)
    return pin.read_text().split()[0] if pin.is_file() else None


def _pin(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _validator(path: Path) -> Path:
    """Return the file that holds what the server called the content that the part is of."""
    return path.with_name(f".{path.name}.part.etag")


def _reason(error: Exception) -> str:
    return str(error.reason if isinstance(error, URLError) else error) or type(error).__name__
