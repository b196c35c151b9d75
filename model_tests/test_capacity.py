"""Capacity: budgets follow from the model and the settings, whatever the figures (CAP)."""

from collections.abc import Iterator

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tailmark.budgets import Budgets, Model, Settings
from tailmark.identifiers import ModelName, Tokens
from tailmark_reference.model import capacity
from tailmark_reference.store import sizes

OUTPUTS = (1, 2, 7, 100, 4096, 64_000, 2_000_000)
OVERHEADS = (0, 1, 10, 100, 1000, 10_000, 200_000)

windows = st.integers(16, 2_000_000)
outputs = st.integers(1, 2_000_000)


def _model(window: int, output: int) -> Model:
    return Model(name=ModelName("model"), window=Tokens(window), max_output=Tokens(output))


def _overheads(window: int) -> Iterator[int]:
    yield from (overhead for overhead in OVERHEADS if overhead <= window + 1)
    yield from (window // 10, window // 3, window // 2, window, window + 1)


def _check(model: Model, settings: Settings, budgets: Budgets) -> None:
    """Everything that one set of figures must keep."""
    assert budgets.window == model.window
    assert budgets.safe == budgets.window - budgets.reserve, "CAP-1"
    assert 0 < budgets.reserve < budgets.window, "CAP-2"
    assert budgets.tail is not None
    assert min(budgets.tail, budgets.summary, budgets.safe) >= 1, "CAP-2"
    assert budgets.summary <= min(budgets.reserve, model.max_output), "CAP-4"
    kept = budgets.overhead + budgets.tail + budgets.summary
    if budgets.margin > 0:
        assert kept <= budgets.threshold - budgets.margin, "CAP-5"
    else:
        assert kept >= budgets.threshold, "CAP-5: no room"
    assert 0 < budgets.threshold <= budgets.safe, "CAP-6"
    assert budgets.overhead == settings.overhead


def _check_growth(small: Budgets, large: Budgets) -> None:
    for name in ("reserve", "safe", "threshold", "tail"):
        assert getattr(small, name) <= getattr(large, name), f"CAP-3: {name} at {large.window}"


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_window_up_to_5000(output: int) -> None:
    """CAP-1 to CAP-6 for each window and a sweep of overheads; nothing shrinks from one window to the next."""
    before: dict[int, Budgets] = {}
    for window in range(16, 5001):
        for overhead in set(OVERHEADS):
            settings = Settings(overhead=Tokens(overhead))
            budgets = capacity.budgets.__wrapped__(_model(window, output), settings)
            _check(_model(window, output), settings, budgets)
            if overhead in before:
                _check_growth(before[overhead], budgets)
            before[overhead] = budgets


@given(window=windows, output=outputs, part=st.integers(0, 120))
def test_any_window(window: int, output: int, part: int) -> None:
    """CAP-1 to CAP-6 up to two million tokens, with overheads from nothing to above the window."""
    settings = Settings(overhead=Tokens(window * part // 100))
    model = _model(window, output)
    _check(model, settings, capacity.budgets(model, settings))


@given(window=windows, more=st.integers(1, 2_000_000), output=outputs, overhead=st.integers(0, 2_000_000))
def test_cap_3_nothing_shrinks_when_the_window_grows(
    window: int, more: int, output: int, overhead: int
) -> None:
    """All else equal, reserve, safe limit, threshold and tail budget do not shrink."""
    settings = Settings(overhead=Tokens(overhead))
    small = capacity.budgets(_model(window, output), settings)
    _check_growth(small, capacity.budgets(_model(window + more, output), settings))


@given(window=windows, output=outputs)
def test_cap_5a_the_margin_is_a_quarter(window: int, output: int) -> None:
    """Where nothing is set and the overhead is at most a third of the safe limit."""
    model = _model(window, output)
    safe = capacity.budgets(model, Settings()).safe
    budgets = capacity.budgets(model, Settings(overhead=Tokens(safe // 3)))
    assert 4 * budgets.margin >= budgets.safe


wishes = st.none() | st.integers(0, 5000).map(Tokens)
all_settings = st.builds(
    Settings, overhead=st.integers(0, 3000).map(Tokens), reserve=wishes, threshold=wishes, tail=wishes
)


@given(window=st.integers(16, 4000), output=outputs, settings=all_settings)
def test_cap_7_what_is_taken_is_kept(window: int, output: int, settings: Settings) -> None:
    """Settings are refused with one of their own figures, or stand in the budgets as they were set."""
    model = _model(window, output)
    fault = capacity.settings_fault(model, settings)
    if fault is not None:
        assert fault.figure == getattr(settings, fault.setting.value)
        return
    budgets = capacity.budgets(model, settings)
    assert budgets.scaled == ()
    for name in ("reserve", "threshold", "tail"):
        wish = getattr(settings, name)
        assert wish is None or getattr(budgets, name) == wish


@given(old=st.integers(16, 4000), new=st.integers(16, 4000), settings=all_settings)
def test_cap_7_after_a_change_of_model_figures_are_scaled(old: int, new: int, settings: Settings) -> None:
    """What fitted the old model and not the new one is named as scaled; the budgets are possible all the same."""
    if capacity.settings_fault(_model(old, 1000), settings) is not None:
        return
    model = _model(new, 1000)
    budgets = capacity.budgets(model, settings)
    named = {name.value: None for name in budgets.scaled}
    assert all(getattr(settings, name) is not None for name in named)
    left = evolve(
        settings,
        **dict.fromkeys(named),  # type: ignore[arg-type]  # three fields of one type
    )
    assert capacity.settings_fault(model, left) is None
    assert evolve(budgets, scaled=()) == capacity.budgets(model, left)


@given(window=st.integers(0, 3000), output=st.integers(0, 4000), settings=all_settings)
def test_the_store_has_the_same_figures(window: int, output: int, settings: Settings) -> None:
    """Model and store work the budgets out on their own, and agree."""
    model = _model(window, output)
    assert capacity.model_fault(model) == sizes.wrong_model(model)
    if capacity.model_fault(model) is None:
        assert capacity.settings_fault(model, settings) == sizes.wrong_settings(model, settings)
        assert capacity.budgets(model, settings) == sizes.budgets_of(model, settings)
