"""What a compaction costs where a provider caches prefixes, and when it has paid for itself (CACHE-3)."""

from fractions import Fraction

from attrs import frozen

from tailmark.identifiers import Tokens


@frozen(kw_only=True)
class Prices:
    """Prices of one token, all in the same unit of the reader's choice."""

    read: Fraction
    """An input token that the cache serves."""

    write: Fraction
    """An input token that the cache does not hold yet."""

    output: Fraction


@frozen(kw_only=True)
class CompactionSizes:
    """The sizes in tokens of one compaction."""

    before: Tokens
    """The last request before it, all of which the cache holds."""

    head: Tokens
    """Instructions and tool schemas, which stay."""

    summary: Tokens
    tail: Tokens


@frozen(kw_only=True)
class PrefixCost:
    """What a cache can serve, and how many requests a compaction needs to pay for itself (CACHE-3)."""

    served_before: Tokens
    served_after: Tokens
    """By the first request behind the compaction: the head alone, because the summary is new."""

    pays_after: int | None
    """Requests behind the compaction, 1 or more; None if it never pays."""


def prefix_cost(sizes: CompactionSizes, prices: Prices) -> PrefixCost:
    """Compare going on with and without the compaction, request by request (CACHE-3).

    The summariser reads the old request from the cache and puts the summary out. Whatever the conversation grows by
    costs the same on both sides and is left out.
    """
    after = sizes.head + sizes.summary + sizes.tail
    saved_each_time = (sizes.before - after) * prices.read
    spent_once = (
        sizes.before * prices.read
        + sizes.summary * prices.output
        + (sizes.summary + sizes.tail) * (prices.write - prices.read)
    )
    return PrefixCost(
        served_before=sizes.before,
        served_after=sizes.head,
        pays_after=_requests(spent_once, saved_each_time),
    )


def _requests(spent: Fraction, saved: Fraction) -> int | None:
    """The smallest number of requests, 1 or more, that saves what was spent."""
    if saved >= spent:
        return 1
    if saved <= 0:
        return None
    return -(-spent // saved)
