"""Wrong rules of capacity and occupancy: budgets, bases, what is added, the ratio."""

from collections.abc import Callable

from attrs import evolve

from tailmark.budgets import Budgets, Model, Occupancy, Settings, WrongSetting
from tailmark.declarations import MeasureReading
from tailmark.identifiers import Tokens
from tailmark.messages import Message, Part, Role, ToolResult
from tailmark_conformance.mutants.wrong_rule import WrongRule, wrong
from tailmark_reference.estimate import part_cost
from tailmark_reference.model import capacity, occupancy
from tailmark_reference.model.occupancy import IsLate, OccupancyRules, PartCost
from tailmark_reference.model.rules import RULES
from tailmark_reference.model.tree import TreeNode, walk

# Every function below has the type of the rule that it replaces; arguments that it does not look at belong
# to that type.
# ruff: noqa: ARG001

_Found = tuple[TreeNode, TreeNode] | None


def _any_model(model: Model) -> WrongSetting | None:
    return None


def _any_settings(model: Model, settings: Settings) -> WrongSetting | None:
    return None


def _names_the_model_instead(model: Model, settings: Settings) -> WrongSetting | None:
    fault = capacity.settings_fault(model, settings)
    return evolve(fault, figure=model.window) if fault is not None else None


def _budgets(change: Callable[[Budgets, Model, Settings], Budgets]) -> Callable[[Model, Settings], Budgets]:
    def budgets(model: Model, settings: Settings) -> Budgets:
        return change(capacity.budgets(model, settings), model, settings)

    return budgets


def _safe_is_the_window(own: Budgets, model: Model, settings: Settings) -> Budgets:
    return evolve(own, safe=own.window)


def _reserve_is_fixed(own: Budgets, model: Model, settings: Settings) -> Budgets:
    reserve = Tokens(16_384)
    return evolve(own, reserve=reserve, safe=Tokens(max(0, own.window - reserve)))


def _reserve_shrinks(own: Budgets, model: Model, settings: Settings) -> Budgets:
    reserve = Tokens(min(own.reserve, max(1, 100_000 // model.window)))
    return evolve(own, reserve=reserve, safe=Tokens(own.window - reserve), summary=min(own.summary, reserve))


def _summary_above_the_output(own: Budgets, model: Model, settings: Settings) -> Budgets:
    return evolve(own, summary=Tokens(min(own.reserve, 12_000)))


def _margin_is_spent_on_the_tail(own: Budgets, model: Model, settings: Settings) -> Budgets:
    tail = own.tail if own.tail is not None else Tokens(0)
    return evolve(own, tail=Tokens(tail + own.margin))


def _threshold_above_the_limit(own: Budgets, model: Model, settings: Settings) -> Budgets:
    return evolve(own, threshold=Tokens(own.safe + 1))


def _overhead_is_forgotten(own: Budgets, model: Model, settings: Settings) -> Budgets:
    return evolve(own, overhead=Tokens(0))


def _scaled_without_a_word(own: Budgets, model: Model, settings: Settings) -> Budgets:
    return evolve(own, scaled=())


def _no_room_and_no_word(own: Budgets, model: Model, settings: Settings) -> Budgets:
    return evolve(own, margin=max(Tokens(1), own.margin))


# Bases ---------------------------------------------------------------------------------------------------


def _base_if(
    is_valid: Callable[[TreeNode, Model], bool],
) -> Callable[[TreeNode | None, TreeNode | None, Model], _Found]:
    """The newest message that is believed, built behind the latest checkpoint."""

    def find_base(leaf: TreeNode | None, latest: TreeNode | None, model: Model) -> _Found:
        for node in walk(leaf):
            if node is latest:
                break
            message = node.message
            if message is None or message.usage is None or message.role is not Role.ASSISTANT:
                continue
            start = occupancy.built_on(node, latest)
            if start is not None and is_valid(node, model):
                return node, start
        return None

    return find_base


def _believes(change: Callable[[Message, Model], Message]) -> Callable[[TreeNode, Model], bool]:
    """Whether a message's usage would be valid if one of its fields were right."""

    def is_valid(node: TreeNode, model: Model) -> bool:
        if node.message is None:
            return False
        changed = change(node.message, model)
        return changed.usage is not None and occupancy.usage_is_valid(changed.usage, model)

    return is_valid


def _with_usage(**fields: object) -> Callable[[Message, Model], Message]:
    def change(message: Message, model: Model) -> Message:
        assert message.usage is not None
        # The fields are named where this is called, so their types are known at run time only.
        return evolve(message, usage=evolve(message.usage, **fields))  # type: ignore[arg-type]  # as said above

    return change


def _of_this_model(message: Message, model: Model) -> Message:
    assert message.usage is not None
    return evolve(message, usage=evolve(message.usage, model=model.name))


def _of_last_request(message: Message, model: Model) -> Message:
    assert message.usage is not None
    scope = type(message.usage.scope).LAST_REQUEST
    return evolve(message, usage=evolve(message.usage, scope=scope))


def _within_the_window(message: Message, model: Model) -> Message:
    assert message.usage is not None
    usage = message.usage
    if usage.input + usage.output <= model.window:
        return message
    return evolve(
        message, usage=evolve(usage, input=model.window, output=Tokens(0), reasoning_output=Tokens(0))
    )


def _built_before_the_checkpoint(leaf: TreeNode | None, latest: TreeNode | None, model: Model) -> _Found:
    for node in walk(leaf):
        if occupancy.may_be_base(node, model):
            start = occupancy.built_on(node, None)
            if start is not None:
                return node, start
    return None


def _built_anywhere(leaf: TreeNode | None, latest: TreeNode | None, model: Model) -> _Found:
    """Takes the message before an answer for what its request was built on, wherever that was."""
    for node in walk(leaf):
        if node is latest:
            break
        if occupancy.may_be_base(node, model) and node.parent is not None:
            return node, node.parent
    return None


def _oldest_base(leaf: TreeNode | None, latest: TreeNode | None, model: Model) -> _Found:
    found = None
    for node in walk(leaf):
        if node is latest:
            break
        if occupancy.may_be_base(node, model):
            start = occupancy.built_on(node, latest)
            found = (node, start) if start is not None else found
    return found


def _no_base(leaf: TreeNode | None, latest: TreeNode | None, model: Model) -> _Found:
    return None


def _only_uncached(message: Message) -> Tokens:
    own = occupancy.figure_of(message)
    return Tokens(own - (message.usage.cached if message.usage is not None else 0))


def _output_is_forgotten(message: Message) -> Tokens:
    return message.usage.input if message.usage is not None else Tokens(0)


def _reasoning_counts_always(message: Message) -> Tokens:
    return Tokens(message.usage.input + message.usage.output) if message.usage is not None else Tokens(0)


def _nothing_is_late(node: TreeNode, position: int) -> bool:
    return False


def _only_what_stands_behind(node: TreeNode, position: int) -> bool:
    """Forgets what was put into the place of a preliminary result."""
    return occupancy.is_late(evolve(node, late=frozenset()), position)


def _nothing_is_added(
    leaf: TreeNode | None, base: TreeNode, start: TreeNode, late: IsLate, cost: PartCost
) -> Tokens:
    return Tokens(0)


def _only_behind_the_base(
    leaf: TreeNode | None, base: TreeNode, start: TreeNode, late: IsLate, cost: PartCost
) -> Tokens:
    """A message that was typed while the answer ran stands before it, and is not counted (OCC-16)."""
    behind = 0
    for node in walk(leaf):
        if node is base:
            break
        behind += node.estimate if node.message is not None else 0
    own = occupancy.added_to(base, base, start, late, cost)
    between = occupancy.added_to(base, base, start, _nothing_is_late, cost)
    return Tokens(behind + own - between)


def _no_ratio(tokens: int, occupancy: Occupancy, reading: MeasureReading) -> Tokens:
    return Tokens(tokens)


def _ratio_below_one(tokens: int, occupancy: Occupancy, reading: MeasureReading) -> Tokens:
    if occupancy.covered == 0 or reading is MeasureReading.PLAIN:
        return Tokens(tokens)
    return Tokens(-(-tokens * occupancy.figure // occupancy.covered))


def _half_a_part(part: Part) -> int:
    return part_cost(part) // 2


def _summary_is_free(text: str) -> Tokens:
    return Tokens(0)


def _message_cost(cost: Callable[[Message, Tokens], int]) -> Callable[[Message], Tokens]:
    return lambda message: Tokens(max(0, cost(message, RULES.estimate(message))))


def _with(**fields: object) -> OccupancyRules:
    # As above: the fields are named where this is called.
    return evolve(RULES.occupancy, **fields)  # type: ignore[arg-type]  # as said above


def _data(message: Message, own: Tokens) -> int:
    return own + sum(len(getattr(part, "data", "")) for part in message.parts)


def _results_are_free(message: Message, own: Tokens) -> int:
    return own - sum(part_cost(part) for part in message.parts if isinstance(part, ToolResult))


def _half_the_characters(message: Message, own: Tokens) -> int:
    return own // 2


def _by_four_whatever_the_script(message: Message, own: Tokens) -> int:
    texts = [text for part in message.parts if (text := getattr(part, "text", ""))]
    return own - sum(sum(not character.isascii() for character in text) * 3 // 4 for text in texts)


def _thoughts_count(message: Message, own: Tokens) -> int:
    hidden = [
        part for part in message.parts if part.kind == "reasoning" and not getattr(part, "replayable", True)
    ]
    return own + sum(len(getattr(part, "text", "")) for part in hidden)


SIZES: tuple[WrongRule, ...] = (
    wrong(
        "any-model",
        "Takes a window of one token, or a model without output.",
        evolve(RULES, model_fault=_any_model),
    ),
    wrong(
        "any-settings",
        "Takes figures that contradict each other.",
        evolve(RULES, settings_fault=_any_settings),
    ),
    wrong(
        "names-the-model-instead",
        "Refuses settings without the figure that is wrong.",
        evolve(RULES, settings_fault=_names_the_model_instead),
    ),
    wrong(
        "safe-is-the-window",
        "Leaves no reserve for the answer.",
        evolve(RULES, budgets=_budgets(_safe_is_the_window)),
    ),
    wrong(
        "reserve-is-fixed",
        "A reserve tuned for a large model swallows a small one.",
        evolve(RULES, budgets=_budgets(_reserve_is_fixed)),
    ),
    wrong(
        "reserve-shrinks",
        "A larger window has a smaller reserve.",
        evolve(RULES, budgets=_budgets(_reserve_shrinks)),
    ),
    wrong(
        "summary-above-the-output",
        "Asks for a summary longer than the model can write.",
        evolve(RULES, budgets=_budgets(_summary_above_the_output)),
    ),
    wrong(
        "margin-is-spent-on-the-tail",
        "A compaction lands at the threshold again.",
        evolve(RULES, budgets=_budgets(_margin_is_spent_on_the_tail)),
    ),
    wrong(
        "threshold-above-the-limit",
        "Compacts when it is too late.",
        evolve(RULES, budgets=_budgets(_threshold_above_the_limit)),
    ),
    wrong(
        "overhead-is-forgotten",
        "Forgets instructions and tools.",
        evolve(RULES, budgets=_budgets(_overhead_is_forgotten)),
    ),
    wrong(
        "scaled-without-a-word",
        "Replaces settings on another model and does not say so.",
        evolve(RULES, budgets=_budgets(_scaled_without_a_word)),
    ),
    wrong(
        "no-room-and-no-word",
        "Compacts although the overhead leaves no room.",
        evolve(RULES, budgets=_budgets(_no_room_and_no_word)),
    ),
    wrong(
        "cumulative-base",
        "Usage summed over requests is a base.",
        evolve(RULES, occupancy=_with(find_base=_base_if(_believes(_of_last_request)))),
    ),
    wrong(
        "aborted-base",
        "Usage of a request that did not end normally is a base.",
        evolve(RULES, occupancy=_with(find_base=_base_if(_believes(_with_usage(ended_normally=True))))),
    ),
    wrong(
        "another-models-base",
        "Usage that another model reported is a base.",
        evolve(RULES, occupancy=_with(find_base=_base_if(_believes(_of_this_model)))),
    ),
    wrong(
        "empty-base",
        "Usage without any input is a base.",
        evolve(
            RULES,
            occupancy=_with(find_base=_base_if(_believes(_with_usage(input=Tokens(1), cached=Tokens(0))))),
        ),
    ),
    wrong(
        "impossible-base",
        "Usage above the window is a base.",
        evolve(RULES, occupancy=_with(find_base=_base_if(_believes(_within_the_window)))),
    ),
    wrong(
        "base-before-the-checkpoint",
        "Usage from before the checkpoint is a base.",
        evolve(RULES, occupancy=_with(find_base=_built_before_the_checkpoint)),
    ),
    wrong(
        "base-off-the-branch",
        "Usage of a request built off the branch is a base.",
        evolve(RULES, occupancy=_with(find_base=_built_anywhere)),
    ),
    wrong(
        "oldest-base", "The oldest usage is the base.", evolve(RULES, occupancy=_with(find_base=_oldest_base))
    ),
    wrong("no-base", "Never looks at usage.", evolve(RULES, occupancy=_with(find_base=_no_base))),
    wrong(
        "only-uncached",
        "Counts only input that was not cached.",
        evolve(RULES, occupancy=_with(figure_of=_only_uncached)),
    ),
    wrong(
        "output-is-forgotten",
        "Forgets the answer's own size.",
        evolve(RULES, occupancy=_with(figure_of=_output_is_forgotten)),
    ),
    wrong(
        "reasoning-counts-always",
        "Counts reasoning that is not sent again.",
        evolve(RULES, occupancy=_with(figure_of=_reasoning_counts_always)),
    ),
    wrong(
        "nothing-is-late",
        "Results put into the base later are not counted.",
        evolve(RULES, occupancy=_with(is_late=_nothing_is_late)),
    ),
    wrong(
        "only-what-stands-behind",
        "A result put into the place of a preliminary one is not counted.",
        evolve(RULES, occupancy=_with(is_late=_only_what_stands_behind)),
    ),
    wrong(
        "late-results-by-half",
        "Results put into the base later are counted by half.",
        evolve(RULES, occupancy=_with(part_cost=_half_a_part)),
    ),
    wrong(
        "nothing-is-added",
        "What came behind the base is not counted.",
        evolve(RULES, occupancy=_with(added_to=_nothing_is_added)),
    ),
    wrong(
        "typed-meanwhile-is-free",
        "A message typed while an answer ran is not counted.",
        evolve(RULES, occupancy=_with(added_to=_only_behind_the_base)),
    ),
    wrong(
        "no-ratio",
        "Declares a calibrated measure and does not calibrate.",
        evolve(RULES, occupancy=_with(scaled=_no_ratio)),
    ),
    wrong(
        "ratio-below-one",
        "A provider that counts less makes estimates smaller.",
        evolve(RULES, occupancy=_with(scaled=_ratio_below_one)),
    ),
    wrong(
        "data-counts",
        "Images and files are counted by their bytes.",
        evolve(RULES, estimate=_message_cost(_data)),
    ),
    wrong(
        "results-are-free",
        "Results of tools cost nothing.",
        evolve(RULES, estimate=_message_cost(_results_are_free)),
    ),
    wrong(
        "half-the-characters",
        "Estimates half of what a text can be.",
        evolve(RULES, estimate=_message_cost(_half_the_characters)),
    ),
    wrong(
        "by-four-whatever-the-script",
        "Four characters are a token in every script.",
        evolve(RULES, estimate=_message_cost(_by_four_whatever_the_script)),
    ),
    wrong(
        "summary-is-free",
        "The summary costs nothing.",
        evolve(RULES, estimate_summary=_summary_is_free),
    ),
    wrong(
        "thoughts-count",
        "Counts reasoning that is not sent.",
        evolve(RULES, estimate=_message_cost(_thoughts_count)),
    ),
)
"""In the order of the chapters on capacity and occupancy."""
