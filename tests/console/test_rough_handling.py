"""What terminals, other programs and bad luck do to a console that is open."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot

from tests.support.consoles import GrowingRun, drive, text_of, until
from tests.support.operating import attached
from tests.support.paced_runs import paced_run
from vertumnus.actions.address import listener
from vertumnus.domain.codec import INPUT, Record
from vertumnus.domain.facts import RankLost
from vertumnus.records.run_dir import RunDir
from vertumnus_console import desk
from vertumnus_console.__main__ import console
from vertumnus_console.app import ConsoleApp
from vertumnus_console.desk import Link

WELCOME = b'{"type":"welcome","version":1,"run_id":"x","actions":["drain","split"],"speed":null}\n'


def test_bytes_that_are_no_text_end_nothing(recorded_run: RunDir, tmp_path: Path) -> None:
    """Bytes of another encoding are no keys, in a paste and outside; the next key counts, and q leaves."""
    near, far = pty.openpty()
    words = [recorded_run.run_id, "--runs-dir", str(recorded_run.path.parent)]
    environment = os.environ | {"TERM": "xterm-256color", "XDG_CACHE_HOME": str(tmp_path)}
    child = subprocess.Popen(
        [sys.executable, "-m", "vertumnus_console", *words],
        stdin=far,
        stdout=far,
        stderr=subprocess.STDOUT,
        env=environment,
    )
    os.close(far)
    drawn = b""
    sent = [b"\xff\xfe\xc3", b"\x1b[200~q\xffq\x80\x1b[201~", b"D", b"q"]
    try:
        while select.select([near], [], [], 60.0)[0]:
            drawn += os.read(near, 65_536)
            if sent and b"replay, end" in drawn:
                os.write(near, sent.pop(0))
    except OSError:  # it has closed the terminal
        pass
    os.close(near)
    assert child.wait(60) == 0 and not sent
    assert b"Traceback" not in drawn and b"UnicodeDecodeError" not in drawn


def test_what_may_be_answered_is_in_sight(recorded_run: RunDir) -> None:
    """A dialog that is longer than the terminal scrolls above the line with its keys, at 40 x 10 as well."""
    app = console(recorded_run.path.parent, recorded_run.run_id, speed=1.0)

    async def script(pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: "replay, end" in text_of(app, "#top"), "the end")
        await pilot.press("down", "s")
        await until(pilot, lambda: "stay" in text_of(app, "#forecast"), "the forecast")
        for size in ((80, 24), (40, 10)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            dialog, choice = app.screen.query_one(".dialog"), app.screen.query_one("#choice")
            assert app.screen.region.contains_region(choice.region) and choice.region.height > 1
            assert dialog.content_region.contains_region(choice.region)
            last = app.screen.query_one("#forecast").region
            assert last.bottom <= choice.region.y or dialog.max_scroll_y > 0
        dialog.scroll_end(animate=False)
        await pilot.pause()
        assert app.screen.query_one("#forecast").region.bottom <= choice.region.y

    drive(app, script)


def test_a_modified_key_is_named(recorded_run: RunDir) -> None:
    """alt+s is no split, and what is said is of alt+s."""
    app = console(recorded_run.path.parent, recorded_run.run_id, speed=1.0)

    async def script(pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: "replay, end" in text_of(app, "#top"), "the end")
        app.screen.post_message(Key("alt+s", "s"))
        await until(pilot, lambda: "alt+s: no such key here" in text_of(app, "#message"), "the message")

    drive(app, script)


def going(recorded_run: RunDir, tmp_path: Path) -> tuple[GrowingRun, ConsoleApp]:
    """A run that goes on, half of it written, and a console on it."""
    growing = GrowingRun(tmp_path, recorded_run)
    growing.grow(0.5)
    return growing, console(tmp_path, "latest", speed=1.0, who="ann")


def test_a_loss_is_told_with_what_follows(recorded_run: RunDir, tmp_path: Path) -> None:
    """As it happens, above the keys: which rank, who is placed anew, and what becomes of the run."""
    growing, app = going(recorded_run, tmp_path)

    async def script(pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: "arrived" in text_of(app, "#counts"), "drawn")
        await until(pilot, lambda: app.screen.drawn.end_ns is not None, "read up to now")
        now = app.screen.drawn.view.now_ns
        growing.tell(Record(INPUT, RankLost(now + 1, 2, 0, "unplugged")))
        said = (
            "lost: rank 2: unplugged; its worker is out of service; 1 request is placed anew; the run goes on"
        )
        await until(pilot, lambda: said in text_of(app, "#message"), "the loss")
        for worker in app.screen.drawn.view.workers:
            growing.tell(Record(INPUT, RankLost(now + 2, worker.group.first_rank, 0, "unplugged")))
        await until(pilot, lambda: "nobody is left to serve" in text_of(app, "#message"), "the last loss")
        await until(pilot, lambda: "no worker in service, 40" in text_of(app, "#composition"), "none")
        assert text_of(app, "#composition").endswith("GPUs  nobody is left to serve: all requests fail")

    drive(app, script)
    growing.end()


def test_a_run_whose_folder_is_deleted(recorded_run: RunDir, tmp_path: Path) -> None:
    """It is told, what was read stays, every screen is still there, and nothing can be changed."""
    growing, app = going(recorded_run, tmp_path)

    async def script(pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: "arrived" in text_of(app, "#counts"), "drawn")
        shutil.rmtree(growing.run.path)
        await until(pilot, lambda: "its log was deleted" in text_of(app, "#message"), "told")
        assert text_of(app, "#top").endswith("log deleted")
        for key in "wutcerlo":
            await pilot.press(key)
            await until(pilot, lambda: app.screen.is_settled, "drawn")
        await pilot.press("left")
        await until(pilot, lambda: "PAUSED" in text_of(app, "#top"), "an instant before")
        await pilot.press("down", "d")
        assert "nothing can be changed" in text_of(app, "#message")

    drive(app, script)
    growing.end()


def test_a_run_that_stands_still_gets_no_second_wish(
    recorded_run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is unanswered is told in the first line; more would pile up and all be done at once later."""
    monkeypatch.setattr(desk, "OWED_S", 0.0)
    growing, app = going(recorded_run, tmp_path)
    ear = listener(growing.run.actions, 1)

    async def script(pilot: "Pilot[None]") -> None:
        accepted, _ = ear.accept()
        accepted.recv(4_096)
        accepted.sendall(WELCOME)
        run = app.screen
        await until(pilot, lambda: run.desk.link is Link.CONNECTED, "attached")
        await until(pilot, lambda: run.drawn is not None and run.drawn.end_ns is not None, "drawn")
        await pilot.press("down", "d")
        await until(pilot, lambda: " no answer for " in text_of(app, "#top"), "told")
        assert b"drain" in accepted.recv(4_096)
        await pilot.press("d")
        said = r"drain: not sent, the run gives no answer for \d+ s; is it stopped\?"
        await until(pilot, lambda: re.fullmatch(said, text_of(app, "#message")) is not None, "not sent")
        accepted.setblocking(False)
        with pytest.raises(BlockingIOError):
            accepted.recv(4_096)
        accepted.setblocking(True)
        accepted.sendall(
            b'{"type":"answered","number":1,"action_id":null,"accepted":false,"reason":"drain: no"}\n'
        )
        await until(pilot, lambda: text_of(app, "#message") == "refused: drain: no", "answered")
        await pilot.press("s")
        await until(pilot, lambda: bool(app.screen.query("#preview")), "a question again")
        accepted.close()

    drive(app, script)
    ear.close()
    growing.end()


def test_a_terminal_of_any_size_ends_nothing(tmp_path: Path) -> None:
    """Shrunk to a corner of itself with a list open, and back: the list is where it was."""
    with paced_run(tmp_path):
        app = console(tmp_path, "latest", speed=1.0, who="ann")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            for key, what in (("p", "#settings"), ("ctrl+p", "#--input")):
                await pilot.press(key)
                await until(pilot, lambda what=what: bool(app.screen.query(what)), what)
                for size in ((20, 5), (4, 4), (1, 1), (80, 24)):
                    await pilot.resize_terminal(*size)
                    await pilot.press("down")
                assert app.screen.query(what)
                await pilot.press("escape")
            assert "arrived" in text_of(app, "#counts")

        drive(app, script)
