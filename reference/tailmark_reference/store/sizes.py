"""How much fits: the budgets of a model under settings, and what is wrong with figures that cannot be (CAP).

Pure arithmetic on whole tokens; every division rounds down but that of the margin.
"""

from functools import lru_cache

from attrs import evolve, frozen

from tailmark.budgets import Budgets, Model, Occupancy, SettingName, Settings, WrongSetting
from tailmark.declarations import MeasureReading
from tailmark.identifiers import Tokens
from tailmark_reference.store.bodies import to_model, to_settings


@frozen
class Sizes:
    """A session's model and settings, and the budgets that follow from both."""

    model: Model
    settings: Settings
    budgets: Budgets


@lru_cache(maxsize=256)
def sizes(model: str, settings: str) -> Sizes:
    """The sizes of a session with these bodies."""
    chosen, wishes = to_model(model), to_settings(settings)
    return Sizes(chosen, wishes, budgets_of(chosen, wishes))


def wrong_model(model: Model) -> WrongSetting | None:
    """A window below 16, or a model that puts nothing out (CAP-2)."""
    if model.window < 16:
        return WrongSetting(setting=SettingName.WINDOW, figure=model.window)
    return (
        WrongSetting(setting=SettingName.MAX_OUTPUT, figure=model.max_output)
        if not model.max_output
        else None
    )


def wrong_settings(model: Model, settings: Settings) -> WrongSetting | None:
    """The first figure of settings that cannot be on this model, or that leaves no room where there would be some (CAP-7)."""
    reserve, threshold, tail = settings.reserve, settings.threshold, settings.tail
    if reserve is not None and (reserve == 0 or reserve >= model.window):
        return WrongSetting(setting=SettingName.RESERVE, figure=reserve)
    safe = model.window - (min(32_000, model.window // 4) if reserve is None else reserve)
    if threshold is not None and (threshold == 0 or threshold > safe):
        return WrongSetting(setting=SettingName.THRESHOLD, figure=threshold)
    if tail == 0:
        return WrongSetting(setting=SettingName.TAIL, figure=tail)
    if _derived(model, settings).margin:
        return None
    if not _derived(model, evolve(settings, reserve=None, threshold=None, tail=None)).margin:
        return None  # it is the overhead that leaves none
    for name, figure in (
        (SettingName.TAIL, tail),
        (SettingName.THRESHOLD, threshold),
        (SettingName.RESERVE, reserve),
    ):
        if figure is not None:
            return WrongSetting(setting=name, figure=figure)
    return None


def _derived(model: Model, settings: Settings) -> Budgets:
    window, overhead = model.window, settings.overhead
    reserve = min(32_000, window // 4) if settings.reserve is None else settings.reserve
    safe = window - reserve
    threshold = safe - safe // 16 if settings.threshold is None else settings.threshold
    left = safe - overhead if overhead < safe else 0
    summary = min(reserve, model.max_output, 12_000, left // 8) or 1
    tail = (min(32_000, left // 4) or 1) if settings.tail is None else settings.tail
    room = threshold - overhead - tail - summary
    quarter = (safe + 3) // 4
    return Budgets(
        window=window,
        reserve=Tokens(reserve),
        safe=Tokens(safe),
        threshold=Tokens(threshold),
        margin=Tokens(min(quarter, room) if room > 0 else 0),
        tail=Tokens(tail),
        summary=Tokens(summary),
        overhead=overhead,
    )


def budgets_of(model: Model, settings: Settings) -> Budgets:
    """The budgets; set figures that do not fit the model give way, the tail first, and are named."""
    kept = settings
    given_up: list[SettingName] = []
    for name in (None, SettingName.TAIL, SettingName.THRESHOLD, SettingName.RESERVE):
        if name is not None:
            if getattr(kept, name.value) is not None:
                given_up.insert(0, name)
            kept = _without(kept, name)
        if wrong_settings(model, kept) is None:
            break
    return evolve(_derived(model, kept), scaled=tuple(given_up))


def _without(settings: Settings, name: SettingName) -> Settings:
    match name:
        case SettingName.TAIL:
            return evolve(settings, tail=None)
        case SettingName.THRESHOLD:
            return evolve(settings, threshold=None)
        case _:
            return evolve(settings, reserve=None)


def scaled(tokens: int, occupancy: Occupancy, measure: MeasureReading) -> Tokens:
    """An estimate brought to the provider's measure (OCC-15)."""
    figure, covered = occupancy.figure, occupancy.covered
    if measure is MeasureReading.CALIBRATED and 0 < covered < figure:
        return Tokens((tokens * figure + covered - 1) // covered)
    return Tokens(tokens)
