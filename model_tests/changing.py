"""Plain JSON values with one thing in them changed."""

import copy
from collections.abc import Iterator
from random import Random
from typing import Any, TypeAlias

Plain: TypeAlias = Any  # Any: a plain JSON value


def changed_plain(random: Random, plain: Plain) -> Plain:
    """A copy with something in it left out, replaced, or in another order; the same where nothing is in it."""
    plain = copy.deepcopy(plain)
    places = list(_places(plain))
    if places:
        _change(random, *random.choice(places), [holder[key] for holder, key in places])
    return plain


def _places(plain: Plain) -> Iterator[tuple[Plain, Plain]]:
    """Every place in the value, as what holds it and its key or index there."""
    for key, part in plain.items() if isinstance(plain, dict) else enumerate(plain):
        yield plain, key
        if isinstance(part, dict | list):
            yield from _places(part)


def _change(random: Random, holder: Plain, key: Plain, others: list[Plain]) -> None:
    match random.randrange(4):
        case 0:
            del holder[key]
        case 1:
            holder[key] = random.choice(others)
        case 2:
            holder[key] = random.choice((0, 1, -1, 2**62, None, [], {}, True, False, "nowhere", 0.5))
        case _ if isinstance(holder, list):
            random.shuffle(holder)
        case _:
            holder[key] = random.choice([other for other in others if type(other) is type(holder[key])])
