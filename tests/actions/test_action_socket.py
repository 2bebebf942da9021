"""The action socket by itself: who may connect, what is posted, what is refused."""

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from vertumnus.actions.address import address
from vertumnus.actions.client import ActionClient, NotConnected
from vertumnus.actions.protocol import LONGEST_LINE, Act, Bye, Hello, Lines, encode, from_run
from vertumnus.actions.server import MOST_CONSOLES, ActionServer
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import INPUT, ORDER, Record
from vertumnus.domain.facts import OperatorActed
from vertumnus.domain.orders import Answer

WORKER = CpGroup(0, 4)


class Pace:
    """A speed that can be looked at."""

    def __init__(self) -> None:
        self.speed = 20.0

    def set_speed(self, speed: float) -> None:
        """Remember it."""
        self.speed = speed


class Run:
    """Answers what is posted, as the loop would."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.posted: list[OperatorActed] = []
        self.answers = True
        self.pace = Pace()
        self.server = ActionServer(path, "01RUN", self.post, self.pace, first_id=5)

    def post(self, fact: OperatorActed) -> None:
        """Refuse every drain, accept the rest."""
        self.posted.append(fact)
        if self.answers:
            answer = Answer(fact.action_id, fact.action != "drain", f"{fact.action}!")
            self.server.told([Record(INPUT, fact), Record(ORDER, answer)])


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """A run whose socket lies at the end of a path longer than an address may be."""
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    run = Run(folder / "actions.sock")
    yield run
    run.server.close()


def raw(run: Run) -> socket.socket:
    """A connection that says what it likes."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(60)
    with address(run.path) as name:
        made.connect(name)
    return made


def last_words(connection: socket.socket) -> str:
    """Read until the run hangs up and return why."""
    received = b""
    while content := connection.recv(4096):
        received += content
    connection.close()
    messages = [from_run(line) for line in received.splitlines()]
    assert isinstance(messages[-1], Bye)
    return messages[-1].reason


def test_an_act_becomes_a_fact_and_its_answer_comes_back(run: Run) -> None:
    """Numbered from the first id on, with the operator's name; accepted or refused with the reason."""
    client = ActionClient(run.path, "ann")
    assert client.welcome.run_id == "01RUN" and client.welcome.speed == 20.0
    assert {"split", "merge", "drain", "speed"} <= set(client.welcome.actions)
    first = client.wait(client.act("split", (WORKER,)), 60)
    assert (first.action_id, first.accepted, first.reason) == (5, True, "split!")
    second = client.wait(client.act("drain", (WORKER,)), 60)
    assert (second.action_id, second.accepted, second.reason) == (6, False, "drain!")
    client.wait(client.act("tune", setting="policy.beta", value=1.5), 60)
    assert run.posted == [
        OperatorActed(0, 5, "ann", "split", (WORKER,)),
        OperatorActed(0, 6, "ann", "drain", (WORKER,)),
        OperatorActed(0, 7, "ann", "tune", (), "policy.beta", 1.5),
    ]
    assert not run.server.is_awaiting
    client.close()


def test_the_socket_is_the_owner_s(run: Run) -> None:
    """Mode 0600, and gone when the run has closed it."""
    assert stat.S_IMODE(run.path.stat().st_mode) == 0o600
    run.server.close()
    assert not run.path.exists()
    with pytest.raises(NotConnected, match="No such file"):
        ActionClient(run.path, "ann")


def test_a_read_only_connection_cannot_act(run: Run) -> None:
    """It is offered no action, and what it sends all the same is refused before anybody sees it."""
    client = ActionClient(run.path, "eve", reads_only=True)
    assert client.welcome.actions == ()
    for action in ("split", "speed", "undo"):
        answer = client.wait(client.act(action, (WORKER,), value=1.0), 60)
        assert not answer.accepted and answer.reason == "this console is read-only"
        assert answer.action_id is None
    assert run.posted == [] and run.pace.speed == 20.0
    client.close()


@pytest.mark.parametrize("value", [-1.0, 2e6, "fast", None])
def test_a_speed_out_of_bounds_is_refused(run: Run, value: object) -> None:
    """The pace stays, and nothing is posted."""
    client = ActionClient(run.path, "ann")
    answer = client.wait(client.act("speed", value=value), 60)
    assert not answer.accepted and "must be from 0 (hold)" in answer.reason
    assert run.pace.speed == 20.0 and run.posted == []
    client.close()


@pytest.mark.parametrize(
    ("worker", "value", "found"),
    [(WORKER, 10**20, "10" + "0" * 19), (CpGroup(-(2**63) - 1, 1), 1.0, "-9223372036854775809")],
)
def test_a_number_that_no_log_can_hold_is_refused(run: Run, worker, value, found) -> None:
    """It is never posted, and who sent it stays connected; its own numbering may be as it likes."""
    client = ActionClient(run.path, "ann")
    client._acts = 2**70
    answer = client.wait(client.act("tune", (worker,), "policy.beta", value), 60)
    assert not answer.accepted and found in answer.reason and "within +-2^63" in answer.reason
    assert client.wait(client.act("undo", (WORKER,), value=2**63 - 1), 60).accepted
    assert [fact.action for fact in run.posted] == ["undo"]
    client.close()


def test_a_speed_is_set_and_noted(run: Run) -> None:
    """The engine's pace changes, and the log gets it like every other action."""
    client = ActionClient(run.path, "ann")
    assert client.wait(client.act("speed", value=0), 60).accepted
    assert run.pace.speed == 0.0 and run.posted[0].action == "speed"
    client.close()


def test_an_executed_run_has_no_speed(tmp_path: Path) -> None:
    """Without a pace the action is not offered, and is refused with the reason."""
    posted: list[OperatorActed] = []
    server = ActionServer(tmp_path / "a.sock", "01RUN", posted.append, None)
    client = ActionClient(tmp_path / "a.sock", "ann")
    assert client.welcome.speed is None and "speed" not in client.welcome.actions
    assert "keeps real time" in client.wait(client.act("speed", value=2.0), 60).reason
    assert posted == []
    client.close()
    server.close()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"nonsense\n", "not a message of version 1"),
        (b'{"type":"act","number":1,"action":"split"}\n', "say hello first"),
        (b'{"type":"hello","version":2,"who":"ann"}\n', "speaks version 1 of the action socket, found 2"),
        (b'{"type":"hello","version":1,"who":"  "}\n', "who must be 1 to 64 printable characters"),
        (b'{"type":"hello","version":1,"who":"a\\u0007b"}\n', "who must be"),
        (b'{"type":"hello","version":1,"who":"a","extra":1}\n', "extra"),
        (
            b'{"type":"hello","version":1,"who":"a"}\n{"type":"act","number":1,"action":"shutdown"}\n',
            "action",
        ),
        (b"x" * (LONGEST_LINE + 1), "longer than"),
    ],
)
def test_what_cannot_be_understood_ends_the_connection(run: Run, line: bytes, said: str) -> None:
    """The reason is said, and others are served on."""
    other = ActionClient(run.path, "bob")
    connection = raw(run)
    connection.sendall(line)
    assert said in last_words(connection)
    assert other.wait(other.act("undo"), 60).accepted
    assert [fact.who for fact in run.posted] == ["bob"]
    other.close()


def test_consoles_beyond_the_limit_are_turned_away(run: Run) -> None:
    """The 33rd console is told so; when one leaves there is room again."""
    clients = [ActionClient(run.path, f"console {number}") for number in range(MOST_CONSOLES)]
    with pytest.raises(NotConnected, match="32 consoles are attached already"):
        ActionClient(run.path, "late")
    clients.pop().close()
    again = ActionClient(run.path, "late")  # the run reads the hang-up before it looks at who comes next
    for client in (*clients, again):
        client.close()


def test_answers_find_their_console(run: Run) -> None:
    """Two operators with the same numbers of their own each get their answer."""
    ann, bob = ActionClient(run.path, "ann"), ActionClient(run.path, "bob")
    assert ann.act("split", (WORKER,)) == bob.act("drain", (WORKER,)) == 1
    assert ann.wait(1, 60).accepted and not bob.wait(1, 60).accepted
    assert ann.answers() == bob.answers() == []
    ann.close()
    bob.close()


def test_a_console_that_left_is_no_trouble(run: Run) -> None:
    """Its wish is carried out, and the answer goes nowhere."""
    run.answers = False
    gone, stays = ActionClient(run.path, "gone"), ActionClient(run.path, "stays")
    gone.act("split", (WORKER,))
    gone.close()
    number = stays.act("undo")
    assert stays._socket.send(b"") == 0
    with pytest.raises(NotConnected, match="no answer in 0"):
        stays.wait(number, 0.0)
    while len(run.posted) < 2:
        pass
    run.server.told([Record(ORDER, Answer(fact.action_id, True, "")) for fact in run.posted])
    assert stays.wait(number, 60).accepted
    stays.close()


def test_the_run_s_end_answers_what_is_open(run: Run) -> None:
    """Who waits is told that the run ended, and then that it hung up."""
    run.answers = False
    client = ActionClient(run.path, "ann")
    number = client.act("split", (WORKER,))
    while not run.posted:
        pass
    run.server.close()
    answer = client.wait(number, 60)
    assert not answer.accepted and answer.reason == "the run ended before it was taken"
    with pytest.raises(NotConnected, match="the run has ended"):
        client.wait(99, 60)
    client.close()


def test_lines_may_come_in_any_pieces() -> None:
    """A message byte by byte, two at once, empty lines between them."""
    one, two = encode(Hello(version=1, who="ann")), encode(Act(number=1, action="undo"))
    lines = Lines()
    pieces = [bytes([byte]) for byte in one] + [b"\n\n" + two + two]
    told = [line for piece in pieces for line in lines.feed(piece)]
    assert [line + b"\n" for line in told] == [one, two, two]
    assert msgspec.json.decode(told[0])["type"] == "hello"
