"""Downloads from a server on this machine: resumed, checked, whole or not at all."""

import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.support.traces import a_workload
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, FAILED, OK
from vertumnus.domain.errors import ConfigError
from vertumnus.trace.config import ArrivalConfig
from vertumnus.trace.download import DownloadFailed, download
from vertumnus.trace.load import load_rows

CONTENT = bytes(range(256)) * 40
SHA = hashlib.sha256(CONTENT).hexdigest()


class _Server(ThreadingHTTPServer):
    """Serves `content`, and breaks the connection after `stop_after` bytes once."""

    content = CONTENT
    etag = '"one"'
    status = 200
    stop_after: int | None = None
    ranges: list[str | None]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.ranges.append(wanted)
        if self.server.status != 200:
            self.send_error(self.server.status)
            return
        start = 0
        if wanted and self.headers.get("If-Range") == self.server.etag:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(self.server.content):
                self.send_error(416)
                return
        body = self.server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("ETag", self.server.etag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.stop_after is not None:
            body, self.server.stop_after = body[: self.server.stop_after], None
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    """A server on the loopback interface, gone after the test."""
    found = _Server(("127.0.0.1", 0), _Handler)
    found.ranges = []
    thread = Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def _url(server: _Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/t.jsonl"


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _nothing(have: int, total: int | None) -> None:
    pass


def test_a_file_is_fetched_and_its_checksum_kept(server: _Server, tmp_path: Path) -> None:
    """The first checksum is expected from then on; a second call fetches nothing."""
    path = tmp_path / "below" / "t.jsonl"
    told: list[tuple[int, int | None]] = []
    found = download(_url(server), path, None, lambda have, total: told.append((have, total)))
    assert (path.read_bytes(), found.payload_bytes, found.sha256, found.is_pinned) == (
        CONTENT,
        10_240,
        SHA,
        False,
    )
    assert told[-1] == (10_240, 10_240)
    assert _names(path.parent) == ["t.jsonl", "t.jsonl.sha256"]
    assert (path.parent / "t.jsonl.sha256").read_text() == f"{SHA}  t.jsonl\n"
    assert download(_url(server), path, None, _nothing).is_pinned
    assert server.ranges == [None]


def test_a_broken_download_goes_on_where_it_stopped(server: _Server, tmp_path: Path) -> None:
    """The part is kept out of sight; the next try asks for the rest only."""
    server.stop_after = 3_000
    path = tmp_path / "t.jsonl"
    with pytest.raises(DownloadFailed, match=r"it ended after 3,000 of 10,240 bytes; what has come is kept"):
        download(_url(server), path, SHA, _nothing)
    assert not path.exists()
    download(_url(server), path, SHA, _nothing)
    assert path.read_bytes() == CONTENT and server.ranges == [None, "bytes=3000-"]
    assert _names(tmp_path) == ["t.jsonl"]


def test_a_content_that_changed_meanwhile_starts_anew(server: _Server, tmp_path: Path) -> None:
    """Parts of two contents are never put together."""
    server.stop_after = 3_000
    path = tmp_path / "t.jsonl"
    with pytest.raises(DownloadFailed):
        download(_url(server), path, None, _nothing)
    server.content, server.etag = CONTENT[::-1], '"two"'
    download(_url(server), path, None, _nothing)
    assert path.read_bytes() == CONTENT[::-1]


def test_a_content_that_shrank_starts_anew(server: _Server, tmp_path: Path) -> None:
    """A server that has nothing behind the part answers 416."""
    server.stop_after = 3_000
    path = tmp_path / "t.jsonl"
    with pytest.raises(DownloadFailed):
        download(_url(server), path, None, _nothing)
    server.content = CONTENT[:1_000]
    download(_url(server), path, None, _nothing)
    assert path.read_bytes() == CONTENT[:1_000]


def test_a_wrong_checksum_keeps_nothing(server: _Server, tmp_path: Path) -> None:
    """Found and wanted are told; a file that is there already stays as it is."""
    path = tmp_path / "t.jsonl"
    with pytest.raises(ConfigError, match=f"sha256: found {SHA}, must be {'0' * 64}; nothing of"):
        download(_url(server), path, "0" * 64, _nothing)
    assert _names(tmp_path) == []
    path.write_text("something else")
    with pytest.raises(ConfigError, match=r"must be .*; remove .*t.jsonl to fetch it anew"):
        download(_url(server), path, SHA, _nothing)
    assert path.read_text() == "something else" and server.ranges == [None]


def test_what_a_server_should_not_answer(server: _Server, tmp_path: Path) -> None:
    """A pointer instead of a file, an error, no server, and an address of another kind."""
    path = tmp_path / "t.jsonl"
    server.content = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n"
    with pytest.raises(ConfigError, match="gives a pointer of Git LFS"):
        download(_url(server), path, None, _nothing)
    server.status = 404
    with pytest.raises(ConfigError, match="the server answers 404 Not Found"):
        download(_url(server), path, None, _nothing)
    with pytest.raises(ConfigError, match="must begin with http:// or https://"):
        download("file:///etc/hostname", path, None, _nothing)
    server.shutdown()
    server.server_close()
    with pytest.raises(DownloadFailed, match="Connection refused"):
        download(_url(server), path, None, _nothing)
    assert _names(tmp_path) == []


def test_the_verb_fetches_a_workloads_file(
    server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the end of the workload's name, to the path of its config; without a name they are listed."""
    monkeypatch.chdir(tmp_path)
    words = ["trace", "download", "toolagent", f"url={_url(server)}"]
    assert main([*words, f"sha256={SHA}"]) == OK
    assert capsys.readouterr().out == (
        f"traces/toolagent_trace.jsonl: 10,240 bytes, sha256 {SHA} (as expected)\n"
    )
    assert main(words) == BAD_INPUT  # the checksum of the config
    assert "sha256: found" in capsys.readouterr().err
    server.stop_after = 100
    assert main([*words, "path=other.jsonl", "sha256=null"]) == FAILED
    assert main([*words, "path=other.jsonl", "sha256=null"]) == OK
    assert "seen for the first time, expected from now on" in capsys.readouterr().out
    assert main(["trace", "download"]) == OK
    listed = capsys.readouterr().out
    assert all(name in listed for name in ("mooncake_conversation", "azure_2023_conv", "burst_gpt"))


def test_a_run_without_the_file_says_how_to_get_it() -> None:
    """The message names the verb and the workload."""
    workload = a_workload(name="burst_gpt", path="gone.csv", url="https://example.org/t.csv")
    message = r"no file 'gone\.csv' yet; vertumnus trace download burst_gpt fetches it"
    with pytest.raises(ConfigError, match=message):
        load_rows(workload, ArrivalConfig(), 0)
