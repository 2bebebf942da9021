"""The zigzag split: a permutation, balanced, with one numbering for tokens and rows."""

from hypothesis import given
from hypothesis import strategies as st

from vertumnus.domain.prefill_time import attention_work
from vertumnus.domain.zigzag import Place, Zigzag

zigzags = st.builds(Zigzag, st.integers(0, 3_000), st.sampled_from([1, 2, 4, 8]))


def test_hand_worked_split() -> None:
    """Ten tokens at C = 2: chunks of 3, the last one holds a single token."""
    zigzag = Zigzag(10, 2)
    assert (zigzag.chunk_tokens, zigzag.rows) == (3, 6)
    assert zigzag.tokens_of(0) == (0, 1, 2, 9)
    assert zigzag.tokens_of(1) == (3, 4, 5, 6, 7, 8)
    assert zigzag.place(9) == Place(rank_in_group=0, row=3)
    assert list(zigzag.gathered_chunks()) == [
        (0, range(3)),
        (1, range(3)),
        (1, range(3, 6)),
        (0, range(3, 4)),
    ]


def test_the_last_token_need_not_be_the_leaders() -> None:
    """R = 5 at C = 4: chunks of one token, so position L - 1 is at rank 3."""
    assert Zigzag(5, 4).place(4).rank_in_group == 3


@given(zigzags)
def test_every_token_is_computed_once(zigzag: Zigzag) -> None:
    """The ranks' tokens are a permutation of 0 .. R - 1."""
    tokens = [token for rank in range(zigzag.degree) for token in zigzag.tokens_of(rank)]
    assert sorted(tokens) == list(range(zigzag.tokens))


@given(zigzags)
def test_local_and_global_indices_are_inverse(zigzag: Zigzag) -> None:
    """Row r of a rank is the token whose place is that rank and row."""
    for rank in range(zigzag.degree):
        places = [zigzag.place(token) for token in zigzag.tokens_of(rank)]
        assert places == [Place(rank, row) for row in range(len(places))]


@given(zigzags)
def test_gathered_chunks_are_the_tokens_in_order(zigzag: Zigzag) -> None:
    """Reading the gathered rows chunk by chunk gives 0 .. R - 1, inside what each rank sent."""
    read = [
        zigzag.tokens_of(rank)[row]
        for rank, rows in zigzag.gathered_chunks()
        for row in rows
        if row < zigzag.rows
    ]
    assert read == list(range(zigzag.tokens))


@given(st.integers(1, 200), st.sampled_from([1, 2, 4, 8]))
def test_full_chunks_balance_tokens_and_pairs(chunk_tokens: int, degree: int) -> None:
    """When 2C divides R every rank has R / C tokens and the same query-key pairs."""
    zigzag = Zigzag(2 * degree * chunk_tokens, degree)
    shares = [zigzag.tokens_of(rank) for rank in range(degree)]
    pairs = {sum(token + 1 for token in share) for share in shares}
    assert {len(share) for share in shares} == {2 * chunk_tokens}
    assert pairs == {attention_work(zigzag.tokens, 0) // degree}


@given(zigzags)
def test_padding_is_less_than_a_row_of_chunks(zigzag: Zigzag) -> None:
    """Padding costs at most 2C - 1 rows in all, and no rank has more tokens than rows."""
    assert 0 <= zigzag.degree * zigzag.rows - zigzag.tokens < 2 * zigzag.degree
    assert all(len(zigzag.tokens_of(rank)) <= zigzag.rows for rank in range(zigzag.degree))
