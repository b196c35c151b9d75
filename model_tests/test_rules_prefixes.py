"""Prefixes: what a compaction costs where a provider caches them."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tailmark.identifiers import Tokens
from tailmark_conformance.reports.prefix_cost import CompactionSizes, Prices, prefix_cost

_TOKENS = st.integers(0, 300).map(Tokens)
_PRICE = st.fractions(0, 20, max_denominator=10)
_SIZES = st.builds(CompactionSizes, before=_TOKENS, head=_TOKENS, summary=_TOKENS, tail=_TOKENS)
_PRICES = st.builds(Prices, read=_PRICE, write=_PRICE, output=_PRICE)


def _bill(sizes: CompactionSizes, prices: Prices, requests: int) -> Fraction:
    """What the compaction and the requests behind it cost: the first one writes, the others read."""
    summarising = sizes.before * prices.read + sizes.summary * prices.output
    first = sizes.head * prices.read + (sizes.summary + sizes.tail) * prices.write
    later = (sizes.head + sizes.summary + sizes.tail) * prices.read
    return summarising + first + (requests - 1) * later


def _pays(sizes: CompactionSizes, prices: Prices, requests: int) -> bool:
    """Whether these requests were no dearer than without the compaction."""
    return _bill(sizes, prices, requests) <= requests * sizes.before * prices.read


@given(_SIZES, _PRICES)
def test_a_compaction_has_paid_at_the_first_request_that_is_no_dearer(
    sizes: CompactionSizes, prices: Prices
) -> None:
    """CACHE-3: a bill that is added up request by request agrees."""
    cost = prefix_cost(sizes, prices)
    assert (cost.served_before, cost.served_after) == (sizes.before, sizes.head)
    if cost.pays_after is None:
        assert not any(_pays(sizes, prices, requests) for requests in (1, 2, 1000, 10**9))
    else:
        assert _pays(sizes, prices, cost.pays_after)
        assert cost.pays_after == 1 or not _pays(sizes, prices, cost.pays_after - 1)


def test_a_compaction_that_frees_nothing_never_pays() -> None:
    """CACHE-3: where summary and tail are as long as what they replace, there is nothing to win."""
    sizes = CompactionSizes(before=Tokens(100), head=Tokens(10), summary=Tokens(50), tail=Tokens(40))
    assert (
        prefix_cost(sizes, Prices(read=Fraction(1), write=Fraction(12), output=Fraction(50))).pays_after
        is None
    )
