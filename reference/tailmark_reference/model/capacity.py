"""What a model and settings allow: the budgets that follow from them, and figures that cannot be (CAP).

All figures are shares of the window, of the safe limit, or of what the overhead leaves of it. Divisions round
down, so that no figure shrinks when the window grows.
"""

from functools import lru_cache

from attrs import evolve

from tailmark.budgets import Budgets, Model, SettingName, Settings, WrongSetting
from tailmark.identifiers import Tokens

SMALLEST_WINDOW = 16
RESERVE_CAP = 32_000
TAIL_CAP = 32_000
SUMMARY_CAP = 12_000
_SET_FIGURES = (SettingName.RESERVE, SettingName.THRESHOLD, SettingName.TAIL)


def model_fault(model: Model) -> WrongSetting | None:
    """The figure of a model that cannot be (CAP-2)."""
    if model.window < SMALLEST_WINDOW:
        return WrongSetting(setting=SettingName.WINDOW, figure=model.window)
    if model.max_output < 1:
        return WrongSetting(setting=SettingName.MAX_OUTPUT, figure=model.max_output)
    return None


def settings_fault(model: Model, settings: Settings) -> WrongSetting | None:
    """The figure of settings that cannot be on a model, or contradicts the others (CAP-7)."""
    reserve, threshold, tail = settings.reserve, settings.threshold, settings.tail
    if reserve is not None and not 0 < reserve < model.window:
        return WrongSetting(setting=SettingName.RESERVE, figure=reserve)
    if threshold is not None and not 0 < threshold <= model.window - reserve_of(model, settings):
        return WrongSetting(setting=SettingName.THRESHOLD, figure=threshold)
    if tail is not None and tail < 1:
        return WrongSetting(setting=SettingName.TAIL, figure=tail)
    if _figures(model, settings).margin > 0 or _figures(model, without(settings, _SET_FIGURES)).margin == 0:
        return None
    set_last = [(SettingName.TAIL, tail), (SettingName.THRESHOLD, threshold), (SettingName.RESERVE, reserve)]
    return next((WrongSetting(setting=name, figure=it) for name, it in set_last if it is not None), None)


def without(settings: Settings, names: tuple[SettingName, ...]) -> Settings:
    """Settings without some of their absolute figures."""
    return evolve(
        settings,
        reserve=None if SettingName.RESERVE in names else settings.reserve,
        threshold=None if SettingName.THRESHOLD in names else settings.threshold,
        tail=None if SettingName.TAIL in names else settings.tail,
    )


def reserve_of(model: Model, settings: Settings) -> Tokens:
    """What is kept free for the answer (CAP-2, CAP-3)."""
    return settings.reserve if settings.reserve is not None else Tokens(min(RESERVE_CAP, model.window // 4))


def _figures(model: Model, settings: Settings) -> Budgets:
    reserve = reserve_of(model, settings)
    safe = model.window - reserve
    threshold = settings.threshold if settings.threshold is not None else safe - safe // 16
    net = max(0, safe - settings.overhead)
    summary = max(1, min(reserve, model.max_output, SUMMARY_CAP, net // 8))
    tail = settings.tail if settings.tail is not None else max(1, min(TAIL_CAP, net // 4))
    room = threshold - settings.overhead - tail - summary
    return Budgets(
        window=model.window,
        reserve=reserve,
        safe=Tokens(safe),
        threshold=Tokens(threshold),
        margin=Tokens(max(0, min(-(-safe // 4), room))),
        tail=Tokens(tail),
        summary=Tokens(summary),
        overhead=settings.overhead,
    )


# The same few models and settings are asked about with every step.
@lru_cache(maxsize=256)
def budgets(model: Model, settings: Settings) -> Budgets:
    """The budgets of a model under settings. Set figures that do not fit the model are replaced and named (CAP-7)."""
    for count in range(len(_SET_FIGURES) + 1):
        dropped = _SET_FIGURES[len(_SET_FIGURES) - count :]
        left = without(settings, dropped)
        if settings_fault(model, left) is None:
            named = tuple(name for name in dropped if _is_set(settings, name))
            return evolve(_figures(model, left), scaled=named)
    raise AssertionError("figures that follow from the model never contradict it")


def _is_set(settings: Settings, name: SettingName) -> bool:
    figures = {
        SettingName.RESERVE: settings.reserve,
        SettingName.THRESHOLD: settings.threshold,
        SettingName.TAIL: settings.tail,
    }
    return figures[name] is not None
