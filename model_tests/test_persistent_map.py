"""The model's map beside a dict: the same answers, and no version ever changes."""

from typing import Final

from attrs import field, frozen
from hypothesis import example, given
from hypothesis import strategies as st
from typing_extensions import override

from tailmark_reference.model.persistent_map import PersistentMap


@frozen
class Key:
    """A key whose hash is chosen, so that keys meet on every level and in one bucket."""

    name: int
    hash: int = field(eq=False)

    @override
    def __hash__(self) -> int:
        return self.hash


# Hashes that are equal, differ in the first four bits, in the last of sixty, only above them, or by sign.
HASHES: Final = (0, 1, 15, 16, 17, 1 << 56, 1 << 59, 1 << 60, (1 << 60) + 1, -1, -3, -(1 << 60))
# One hash for each name: equal keys have equal hashes.
keys = st.integers(0, 60).map(lambda name: Key(name, HASHES[name % len(HASHES)]))
entries = st.lists(st.tuples(keys, st.integers(0, 5)), max_size=80)


class TestBesideADict:
    @given(entries=entries, absent=st.lists(keys))
    @example(entries=[(Key(0, 0), 1), (Key(12, 0), 2), (Key(24, 0), 3), (Key(12, 0), 4)], absent=[Key(36, 0)])
    def test_the_same_answers(self, entries: list[tuple[Key, int]], absent: list[Key]) -> None:
        expected: dict[Key, int] = {}
        made: PersistentMap[Key, int] = PersistentMap()
        for key, value in entries:
            expected[key] = value
            made = made.set(key, value)
        for key in (*expected, *absent):
            assert made.get(key) == expected.get(key)
            assert (key in made) == (key in expected)

    @given(entries=entries)
    def test_old_versions_stay_as_they_were(self, entries: list[tuple[Key, int]]) -> None:
        versions: list[tuple[PersistentMap[Key, int], dict[Key, int]]] = [(PersistentMap(), {})]
        for key, value in entries:
            made, expected = versions[-1]
            versions.append((made.set(key, value), {**expected, key: value}))
        everything = {key for key, _ in entries}
        for made, expected in versions:
            assert {key: made.get(key) for key in everything if key in made} == expected

    @given(entries=entries, branch=st.integers(0, 80), other=entries)
    def test_two_maps_made_from_one_do_not_meet(
        self, entries: list[tuple[Key, int]], branch: int, other: list[tuple[Key, int]]
    ) -> None:
        shared, shared_dict = PersistentMap[Key, int](), dict[Key, int]()
        for key, value in entries[:branch]:
            shared, shared_dict = shared.set(key, value), {**shared_dict, key: value}
        for rest in (entries[branch:], other):
            made, expected = shared, dict(shared_dict)
            for key, value in rest:
                made = made.set(key, value)
                expected[key] = value
            for key in {key for key, _ in (*entries, *other)}:
                assert made.get(key) == expected.get(key)

    def test_many_keys(self) -> None:
        made: PersistentMap[str, int] = PersistentMap()
        for number in range(20_000):
            made = made.set(f"node-{number}", number)
        assert all(made.get(f"node-{number}") == number for number in range(20_000))
        assert "node-20000" not in made
