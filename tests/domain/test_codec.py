"""Every fact, order and outcome survives the log; the types are found, not listed."""

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import a_request
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import Body, Record, decode_batch, encode_batch, to_json_line
from vertumnus.domain.facts import Fact, RequestArrived, RequestEnded
from vertumnus.domain.jobs import Outcome
from vertumnus.domain.orders import Order, Reclaim, Transfer

BODIES = sorted((kind for base in (Fact, Order, Outcome) for kind in base.__subclasses__()), key=str)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(max_size=8),
    type(None): st.none(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Return any value of an annotation that a fact, order or outcome uses."""
    if kind in SCALARS:
        return SCALARS[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, UnionType):
        return st.one_of([values(argument) for argument in arguments])
    if origin is tuple and arguments[1:] == (...,):
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    return st.builds(kind, *(values(hint) for hint in get_type_hints(kind).values()))


def test_every_subclass_can_be_logged() -> None:
    """A class of fact, order or outcome that the log's union forgets is found here."""
    assert set(BODIES) == set(get_args(Body))
    assert len(BODIES) >= 20


@pytest.mark.parametrize("kind", BODIES, ids=lambda kind: kind.__name__)
def test_round_trip(kind: type) -> None:
    """Any value of the type, at the edges of its integers too, comes back equal and of its type."""

    @settings(max_examples=25)
    @given(st.lists(st.builds(Record, st.integers(0, 2), values(kind)), max_size=3))
    def check(records: list[Record]) -> None:
        back = decode_batch(encode_batch(records))
        assert back == records
        assert [type(record.body) for record in back] == [type(record.body) for record in records]
        for record in records:
            assert msgspec.json.decode(to_json_line(record), type=Record) == record

    check()


def test_orders_from_before_origins_are_read() -> None:
    """A copy and a deletion that end where they ended then have no origin."""
    copy = ["Transfer", 2, [7, 8], 1, [3], [0, 1], "pull", 5]
    reclaim = ["Reclaim", 1, [0, 1], [8], 9]
    payload = msgspec.msgpack.encode([[2, copy], [2, reclaim]])
    bodies = [record.body for record in decode_batch(payload)]
    worker = CpGroup(0, 1)
    assert bodies == [Transfer(2, (7, 8), 1, (3,), worker, "pull", 5), Reclaim(1, worker, (8,), 9)]


def test_a_line_for_people_names_the_class() -> None:
    """The JSON form starts with source and class name."""
    line = to_json_line(Record(1, RequestEnded(5, 7, "finished", 3)))
    assert line == '[1,["RequestEnded",5,7,"finished",3,null]]'


def test_types_of_a_group_come_back() -> None:
    """A named tuple inside a body keeps its names: block keys stay a tuple, or None where unknown."""
    known, unknown = a_request(0), msgspec.structs.replace(a_request(1), block_keys=None)
    back = decode_batch(
        encode_batch([Record(0, RequestArrived(0, known)), Record(0, RequestArrived(1, unknown))])
    )
    assert [record.body.request.block_keys for record in back] == [known.block_keys, None]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        encode_batch([Record(0, RequestEnded(5, 7, "finished", 3))])[:-1],
        msgspec.msgpack.encode([[0, ["NoSuchFact", 1]]]),
        msgspec.msgpack.encode([[0, ["RequestEnded", 5, 7, "exploded", 3]]]),
        msgspec.msgpack.encode([[0, ["RequestEnded", 5, 7.5, "finished", 3]]]),
    ],
)
def test_anything_else_is_refused(payload: bytes) -> None:
    """Cut, foreign or mistyped bytes raise instead of decoding to something near."""
    with pytest.raises(msgspec.DecodeError):
        decode_batch(payload)
