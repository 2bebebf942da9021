"""W(R, P) of Eq. 1, E_C(R, P) of Eq. 2 and the profile around them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import a_prefill_time, a_profile
from vertumnus.domain.prefill_time import Coefficients, PrefillTimeModel, attention_work

tokens = st.integers(0, 300)


@given(tokens, tokens)
def test_attention_work_counts_the_visible_keys(uncached: int, cached: int) -> None:
    """W is one key for each cached token, each earlier uncached one and the query itself (Eq. 1)."""
    assert attention_work(uncached, cached) == sum(cached + place + 1 for place in range(uncached))


@given(tokens, tokens)
def test_reuse_saves_the_triangle_of_the_prefix(uncached: int, cached: int) -> None:
    """What P tokens of cache leave out of W is exactly the prefix's own triangle."""
    whole = attention_work(uncached + cached, 0)
    assert whole - attention_work(uncached, cached) == attention_work(cached, 0)


@pytest.mark.parametrize(
    ("degree", "uncached", "cached", "expected_ns"),
    [
        # d 10 ms, a*R 1 ms, b*P 0.05 ms, c*R 10 ms, alpha*W 0.1005 ms, g 2 ms a doubling
        (1, 100, 50, 21_150_500),
        (2, 100, 50, 12_000_000 + 1_050_000 + 10_100_500 // 2),
        (4, 100, 50, 14_000_000 + 1_050_000 + 10_100_500 // 4),
        (1, 1, 0, 10_000_000 + 10_000 + 100_000 + 10),
    ],
)
def test_prediction_by_hand(degree: int, uncached: int, cached: int, expected_ns: int) -> None:
    """E_C(R, P) = d + g log2 C + aR + bP + (cR + alpha W)/C, to the nanosecond (Eq. 2)."""
    assert a_prefill_time().predict(degree, uncached, cached) == pytest.approx(expected_ns, abs=1)


def test_published_form_has_no_cost_per_doubling() -> None:
    """With g = 0, as published, an almost empty prompt costs the same d at every degree."""
    model = PrefillTimeModel.of(Coefficients(0.01, 0.0, 0.0, 0.0, 0.0), (1, 2, 8))
    assert [model.predict(degree, 1, 0) for degree in model.degrees] == [10_000_000] * 3


@given(st.sampled_from([1, 2, 4]), st.integers(1, 5_000), st.integers(0, 5_000), st.integers(0, 5_000))
def test_more_reuse_is_never_slower(degree: int, length: int, first: int, second: int) -> None:
    """For a fixed L the prediction falls with P, as long as reading a token costs less than making it."""
    less, more = sorted(min(cached, length - 1) for cached in (first, second))
    predict = a_prefill_time().predict
    assert predict(degree, length - more, more) <= predict(degree, length - less, less)


@given(st.sampled_from([1, 2, 4]), st.lists(st.tuples(st.integers(1, 900), tokens), min_size=1, max_size=6))
def test_a_step_pays_its_start_up_once(degree: int, items: list[tuple[int, int]]) -> None:
    """A step's shares are each request's time alone, less d for all but the first."""
    model = a_prefill_time()
    alone = [model.predict(degree, uncached, cached) for uncached, cached in items]
    shares = model.step_shares(degree, items)
    startup = 10_000_000 + 2_000_000 * (degree.bit_length() - 1)
    assert shares[0] == alone[0]
    assert sum(shares) == sum(alone) - startup * (len(items) - 1)
    assert all(share > 0 for share in shares)


def test_degrees_ascend() -> None:
    """The model knows the degrees that it was made for, in order."""
    assert PrefillTimeModel.of(a_profile().prefill, (4, 1, 2)).degrees == (1, 2, 4)


@pytest.mark.parametrize("field", Coefficients.__struct_fields__)
@pytest.mark.parametrize("value", [-1e-9, float("inf"), float("nan")])
def test_coefficients_are_finite_and_not_negative(field: str, value: float) -> None:
    """A coefficient that no time can have is refused by name."""
    fields = dict.fromkeys(Coefficients.__struct_fields__, 0.0) | {field: value}
    with pytest.raises(ValueError, match=rf"{field} must be a finite number of seconds >= 0"):
        Coefficients(**fields)


def test_profile_by_hand() -> None:
    """Hand-off is base plus a rate for each token; the profile predicts at its own degrees only."""
    profile = a_profile((2, 4))
    assert profile.handoff(1_000) == 1_000_000 + 1_000_000
    assert profile.prefill_time().degrees == (2, 4)
    with pytest.raises(KeyError):
        profile.prefill_time().predict(1, 10, 0)
