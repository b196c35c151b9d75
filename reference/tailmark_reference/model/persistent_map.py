"""A map that stays as it is when another is made from it.

A hash trie: each level looks at four bits of the key's hash. Adding one key copies one tuple of sixteen
per level, so it costs the logarithm of the size to the base 16: three levels for 4,096 keys, five for a
million.
"""

from typing import Generic, TypeVar, cast

from attrs import frozen

K = TypeVar("K")
V = TypeVar("V")

_BITS = 4
_MASK = (1 << _BITS) - 1
_DEPTH = 15  # levels that have four bits of a 60-bit hash; below, keys of equal hash share a bucket
_EMPTY_ROW: tuple[object, ...] = (None,) * (_MASK + 1)


@frozen(eq=False)
class _Entry:
    """One key and its value."""

    key: object
    value: object


@frozen(eq=False, repr=False)
class PersistentMap(Generic[K, V]):
    """Keys and values. `set` answers another map and leaves this one alone."""

    # A row is None (nothing), an _Entry, a tuple of sixteen rows, or at the bottom a list of entries.
    _row: object = None

    def get(self, key: K) -> V | None:
        """The key's value, or ``None``."""
        row = self._row
        bits = hash(key)
        while isinstance(row, tuple):
            row = row[bits & _MASK]
            bits >>= _BITS
        if isinstance(row, list):
            row = next((entry for entry in row if entry.key == key), None)
        if isinstance(row, _Entry) and row.key == key:
            return cast("V", row.value)
        return None

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def set(self, key: K, value: V) -> "PersistentMap[K, V]":
        """This map with one key more, or with another value for it. Values are never ``None``."""
        return PersistentMap(_with(self._row, hash(key), 0, _Entry(key, value)))


def _with(row: object, bits: int, level: int, entry: _Entry) -> object:
    match row:
        case None:
            return entry
        case tuple():
            index = bits & _MASK
            below = _with(row[index], bits >> _BITS, level + 1, entry)
            return (*row[:index], below, *row[index + 1 :])
        case _Entry() if row.key == entry.key:
            return entry
        case _Entry() if level >= _DEPTH:
            return [row, entry]
        case _Entry():
            # Two keys meet here: the older one moves one level down, then both are told apart there.
            index = hash(row.key) >> (_BITS * level) & _MASK
            parted = (*_EMPTY_ROW[:index], row, *_EMPTY_ROW[index + 1 :])
            return _with(parted, bits, level, entry)
        case list():
            return [*(other for other in row if other.key != entry.key), entry]
        case _:
            raise TypeError(f"no row of a map: {row!r}")
