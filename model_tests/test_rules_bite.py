"""Whatever is answered or shown wrongly breaks a clause, and nothing that is shown stops a predicate.

The runs are the model's, so every step is right. One thing of a step is then replaced.
"""

from collections.abc import Iterator
from functools import cache
from random import Random

import pytest
from attrs import evolve

from tailmark.identifiers import CallId, ClauseId, ModelName, NodeId, PartId, Revision, SessionId, Tokens
from tailmark.judge import PREDICATES, Judge
from tailmark.messages import AnswerEnd, Message, Role, Text
from tailmark.outcomes import (
    Cancelled,
    Committed,
    Done,
    Failed,
    FailureReason,
    LargePart,
    Noop,
    NoopReason,
    Outcome,
    Planned,
    Previewed,
    RefusalCode,
    Refused,
    Sent,
    Skipped,
    Stale,
    TooLarge,
)
from tailmark.plans import Plan, RetryFor, Trigger
from tailmark.projections import Marking, ProjectionItem
from tailmark.rules.answers import name_of
from tailmark.rules.changes import session_of
from tailmark.rules.scene import Scene, empty_scene
from tailmark.rules.verdicts import Seen, Violated
from tailmark.traces import Step, Trace
from tailmark.views import Change, OpenCall, RunningAnswer, SessionView, StoredNode
from tailmark_conformance.explorers import contents
from tailmark_conformance.explorers.known import Known
from tailmark_conformance.explorers.walks import Walk
from tailmark_conformance.recording import Recorder
from tailmark_reference.model.subject import ModelSubject

STEPS = 40
NOWHERE = NodeId("nowhere")


@cache
def _trace(seed: str) -> Trace:
    """A generated run of the model."""
    random = Random(seed)
    sessions = (SessionId("S1"), SessionId("S2"))
    recorder = Recorder(ModelSubject(), sessions=sessions, model=contents.model(random))
    known = Known(recorder.start)
    walk = Walk(known, random)
    for _ in range(STEPS):
        known.feed(recorder.perform(walk.next()))
    return recorder.trace


def _seen(trace: Trace) -> list[Seen]:
    """Each step as the predicates see it."""
    steps: list[Seen] = []

    def listen(seen: Seen) -> None:
        steps.append(seen)

    judge = Judge(trace.declaration, {ClauseId("LISTEN-1"): listen})
    judge.start(trace.start)
    for step in trace.steps:
        judge.feed(step)
    return steps


def _breaks(seen: Seen) -> bool:
    return any(isinstance(predicate(seen), Violated) for predicate in PREDICATES.values())


def _with_change(seen: Seen, change: Change) -> Seen:
    """The step with another change. Its states share nothing with those of other steps."""
    views = tuple(seen.before.views())
    before = empty_scene().after(Change(sessions=views, nodes=tuple(seen.before.nodes())))
    return evolve(seen, before=before, after=before.after(change), change=change, fresh_change=None)


def _other_answers(seen: Seen) -> Iterator[Outcome]:
    """Every answer of another name than the right one, but those that speak of the store."""
    answers: list[Outcome] = [Done(), Cancelled()]
    answers.extend(Refused(code=code) for code in RefusalCode)
    answers.extend(Noop(reason=reason) for reason in NoopReason)
    answers.extend(Failed(reason=reason) for reason in FailureReason if reason is not FailureReason.LOCKED)
    scene, session = seen.before, session_of(seen.operation)
    if session is not None and scene.knows_session(session):
        calls = tuple(known.call for known in scene.open_calls(session))
        answers.append(Stale(leaf=scene.leaf(session), revision=scene.revision(session)))
        answers.append(Skipped(open_calls=calls, answer_running=scene.running(session) is not None))
    return (answer for answer in answers if name_of(answer) != name_of(seen.outcome))


def _other_details(outcome: Outcome) -> Iterator[Outcome]:
    """The right answer with one thing wrong in it."""
    match outcome:
        case Sent():
            request, attempt = outcome.request, outcome.attempt
            yield evolve(outcome, written=(*outcome.written, NOWHERE))
            yield evolve(outcome, left=(*outcome.left, NOWHERE))
            yield evolve(outcome, abandoned=(*outcome.abandoned, CallId("c")))
            yield evolve(outcome, request=evolve(request, head="another"))
            yield evolve(outcome, request=evolve(request, built_on=NOWHERE))
            yield evolve(outcome, request=evolve(request, items=request.items[1:]))
            if attempt is not None:
                yield evolve(outcome, attempt=None)
            if not isinstance(attempt, Committed):
                yield evolve(outcome, attempt=Committed(checkpoint=NOWHERE))
        case TooLarge():
            yield evolve(outcome, limit=Tokens(outcome.limit + 1))
            yield evolve(outcome, projection=Tokens(0), draft=Tokens(0))
            # Of a retry the ratio that tells a question from the whole may not be shown.
            whole = (LargePart.QUESTION, LargePart.REQUEST)
            for part in LargePart:
                if part is not outcome.part and not (part in whole and outcome.part in whole):
                    yield evolve(outcome, part=part)
            if outcome.attempt is not None:
                yield evolve(outcome, attempt=None)
        case Planned(plan=plan) | Previewed(plan=plan):
            yield from (evolve(outcome, plan=other) for other in _other_plans(plan))
        case Done(plan=Plan() as plan):
            yield evolve(outcome, plan=None)
            yield from (evolve(outcome, plan=other) for other in _other_plans(plan))


def _other_plans(plan: Plan) -> Iterator[Plan]:
    """The plan with one thing wrong."""
    yield evolve(plan, leaf=NOWHERE)
    yield evolve(plan, base=NOWHERE)
    yield evolve(plan, revision=Revision(plan.revision + 1))
    yield evolve(plan, first_kept=NOWHERE)
    yield evolve(plan, old_first_kept=NOWHERE)
    yield evolve(plan, excluded=(*plan.excluded, NOWHERE))
    yield evolve(plan, refresh=not plan.refresh)
    yield evolve(plan, model=evolve(plan.model, name=ModelName("another")))
    yield evolve(plan, budgets=evolve(plan.budgets, safe=Tokens(plan.budgets.safe + 1)))
    yield evolve(plan, budgets=evolve(plan.budgets, tail=Tokens((plan.budgets.tail or 0) + 1)))
    yield evolve(plan, purpose=RetryFor() if plan.purpose is None else None)
    yield evolve(plan, tokens_before=Tokens(plan.tokens_before + 1))
    yield evolve(plan, previous_summary="another")
    yield from (evolve(plan, trigger=trigger) for trigger in Trigger if trigger is not plan.trigger)


def _other_views(view: SessionView, random: Random) -> Iterator[SessionView]:
    """The view with one thing wrong."""
    yield evolve(view, revision=Revision(view.revision + 1))
    yield evolve(view, leaf=None if view.leaf is not None else NOWHERE)
    yield evolve(view, running=RunningAnswer(follows=NOWHERE) if view.running is None else None)
    yield evolve(view, checkpoint=None if view.checkpoint is not None else NOWHERE)
    yield evolve(view, model=evolve(view.model, name=ModelName("another")))
    yield evolve(view, metadata={**view.metadata, "another": "entry"})
    yield evolve(view, settings=evolve(view.settings, automatic=not view.settings.automatic))
    yield evolve(view, settings=evolve(view.settings, head="another"))
    yield evolve(view, open_calls=(*view.open_calls, OpenCall(call=CallId("c"), message=NOWHERE)))
    if view.open_calls:
        yield evolve(view, open_calls=view.open_calls[1:])
    if len(view.branch) > 1:
        yield evolve(view, leaf=view.branch[-2])
        yield evolve(view, branch=view.branch[::-1])
        yield evolve(view, branch=view.branch[1:])
    if view.projection:
        at = random.randrange(len(view.projection))
        for items in _other_items(view.projection[at]):
            yield evolve(view, projection=(*view.projection[:at], *items, *view.projection[at + 1 :]))


def _other_items(item: ProjectionItem) -> Iterator[tuple[ProjectionItem, ...]]:
    yield ()
    yield (item, item)
    yield (evolve(item, node=None),)
    yield (evolve(item, node=NOWHERE),)
    yield (evolve(item, digest="0" * 16),)
    yield (evolve(item, marking=Marking.UNMARKED),)
    if item.marking is Marking.VERBATIM:
        yield (evolve(item, role=Role.USER if item.role is Role.ASSISTANT else Role.ASSISTANT),)


def _other_node(node: StoredNode) -> Iterator[StoredNode]:
    """The node with one thing wrong."""
    yield evolve(node, parent=NOWHERE)
    if isinstance(node.content, Message):
        more = (*node.content.parts, Text(id=PartId("another"), text="another"))
        end = AnswerEnd.FAILED if node.content.end is not AnswerEnd.FAILED else None
        yield evolve(node, content=evolve(node.content, parts=more))
        yield evolve(node, content=evolve(node.content, end=end))
    else:
        yield evolve(node, content=evolve(node.content, summary="another"))


def _other_changes(scene: Scene, change: Change, random: Random) -> Iterator[Change]:
    """The change with one thing wrong, in what it shows or in what it does not show."""
    for view in change.sessions:
        session = view.session
        rest = tuple(other for other in change.sessions if other is not view)
        yield evolve(change, sessions=rest)
        yield evolve(change, sessions=rest, sessions_gone=(session,))
        for other in _other_views(view, random):
            yield evolve(change, sessions=(*rest, other))
    for node in change.nodes:
        kept = tuple(other for other in change.nodes if other is not node)
        yield evolve(change, nodes=kept)
        for wrong in _other_node(node):
            yield evolve(change, nodes=(*kept, wrong))
    changed_nodes = {node.content.id for node in change.nodes}
    untouched = [node for node in scene.nodes() if node.content.id not in changed_nodes]
    if untouched:
        node = random.choice(untouched)
        copy = evolve(node, content=evolve(node.content, id=NOWHERE), parent=node.content.id)
        yield evolve(change, nodes_gone=(node.content.id,))
        yield evolve(change, nodes=(*change.nodes, copy))
        for wrong in _other_node(node):
            yield evolve(change, nodes=(*change.nodes, wrong))


@pytest.mark.parametrize("seed", range(16))
def test_every_other_answer_breaks_a_clause(seed: int) -> None:
    """Refused for done, done for refused, refused for another reason, in another order: a clause says so."""
    for seen in _seen(_trace(f"answers {seed}")):
        for answer in _other_answers(seen):
            assert _breaks(evolve(seen, outcome=answer)), (seen.operation, seen.outcome, answer)


@pytest.mark.parametrize("seed", range(16))
def test_every_other_detail_breaks_a_clause(seed: int) -> None:
    """The right answer with another request, figure, part or plan: a clause says so."""
    for seen in _seen(_trace(f"details {seed}")):
        for answer in _other_details(seen.outcome):
            assert _breaks(evolve(seen, outcome=answer)), (seen.operation, seen.outcome, answer)


@pytest.mark.parametrize("seed", range(16))
def test_every_other_change_breaks_a_clause(seed: int) -> None:
    """Something lost, moved, rewritten, shown wrongly or not shown: a clause says so."""
    random = Random(seed)
    for seen in _seen(_trace(f"changes {seed}")):
        for change in _other_changes(seen.before, seen.change, random):
            assert _breaks(_with_change(seen, change)), (seen.operation, seen.outcome, change)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_that_is_shown_stops_a_predicate(seed: int) -> None:
    """Operations, answers and changes that do not belong together are judged all the same."""
    trace = _trace(f"absurd {seed}")
    random = Random(seed)
    judge = Judge(trace.declaration)
    judge.start(trace.start)
    for _ in range(60):
        change = random.choice(trace.steps).change
        wrong = list(_other_changes(judge.scene, change, random))
        judgements = judge.feed(
            Step(
                operation=random.choice(trace.steps).operation,
                outcome=random.choice(trace.steps).outcome,
                change=random.choice([change, *wrong]),
                fresh=random.choice((None, change)),
            )
        )
        assert {one.clause for one in judgements} <= set(PREDICATES)
