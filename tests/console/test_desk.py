"""The operator's desk: it connects when it can, and never waits for a run that does not answer."""

import socket
from pathlib import Path

import pytest

from vertumnus.actions import client
from vertumnus_console import desk as desk_module
from vertumnus_console.desk import Desk, Link, Wish


@pytest.fixture
def mute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> socket.socket:
    """A socket that takes connections and never says a word, as that of a run that is stopped."""
    monkeypatch.setattr(client, "CONNECT_S", 3_600.0)
    monkeypatch.chdir(tmp_path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("actions.sock")
    listener.listen()
    return listener


def test_a_run_that_does_not_answer_holds_nothing_up(
    mute: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The desk says so and goes on; when the run hangs up it tells that, and tries again."""
    desk = Desk(Path("actions.sock"), "ann", reads_only=False)
    for now in (0.0, 1.5, 3.0):
        desk.turn(True, now)
    assert desk.state == (Link.LOST, "no answer", frozenset(), "ann")
    desk.act(Wish("auto"))
    assert desk.refusals == ["auto: not connected; trying again (no answer)"]
    accepted, _ = mute.accept()
    trying = desk._connecting
    accepted.close()
    mute.close()
    with pytest.raises(client.NotConnected):
        trying.result(30)
    desk.turn(True, 4.0)
    assert desk.state.problem == client.HUNG_UP
    monkeypatch.setattr(desk_module, "PATIENCE_S", 3_600.0)  # this try ends by itself
    desk.turn(True, 4.5)
    assert desk.state.problem.startswith("actions.sock: ")
    desk.close()


def test_a_run_that_owes_an_answer_is_told(mute: socket.socket) -> None:
    """Connected as it is, a run that does not answer for three seconds says so until it does."""
    desk = Desk(Path("actions.sock"), "ann", reads_only=False)
    desk.turn(True, 0.0)
    accepted, _ = mute.accept()
    accepted.recv(4_096)
    accepted.sendall(b'{"type":"welcome","version":1,"run_id":"x","actions":["auto"],"speed":null}\n')
    assert desk._connecting is not None
    desk._connecting.exception(30)
    desk.turn(True, 10.0)
    desk.act(Wish("auto"))
    desk.turn(True, 12.9)
    assert desk.state == (Link.CONNECTED, "", frozenset({"auto"}), "ann")
    desk.turn(True, 17.0)
    assert desk.state == (Link.CONNECTED, "no answer for 7 s", frozenset({"auto"}), "ann")
    accepted.sendall(b'{"type":"answered","number":1,"action_id":7,"accepted":true,"reason":""}\n')
    desk.turn(True, 18.0)
    assert desk.state.problem == "" and [act.what for act in desk.answers] == ["auto"]
    desk.close()
    accepted.close()
    mute.close()


def test_a_desk_that_closes_leaves_no_connection(mute: socket.socket) -> None:
    """One that is answered only after the console has gone hangs up."""
    desk = Desk(Path("actions.sock"), "ann", reads_only=False)
    desk.turn(True, 0.0)
    desk.close()
    accepted, _ = mute.accept()
    accepted.recv(4_096)
    accepted.sendall(b'{"type":"welcome","version":1,"run_id":"x","actions":[],"speed":null}\n')
    assert accepted.recv(4_096) == b""
    accepted.close()
    mute.close()
