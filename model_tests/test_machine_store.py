"""Model against store: several processes on one file, sessions that share nodes, restarts in between."""

import tempfile
from pathlib import Path
from random import Random

from attrs import evolve
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from typing_extensions import override

from tailmark.identifiers import PlanId, SessionId
from tailmark.operations import CommitCompaction, Operation
from tailmark.outcomes import Committed, Done, Outcome, Sent, begun_plan
from tailmark.traces import Step
from tailmark.views import Observation, difference
from tailmark_conformance.explorers import contents
from tailmark_conformance.explorers.known import Known
from tailmark_conformance.explorers.walks import Walk
from tailmark_reference.model.observe import Observer
from tailmark_reference.model.step import step
from tailmark_reference.model.world import Process, empty_world
from tailmark_reference.store.store import Store
from tailmark_reference.store.subject import CAPABILITIES

PROCESSES = 3
SESSIONS = (SessionId("S1"), SessionId("S2"))
NOTHING = Observation(sessions=(), nodes=())


class StoreAgainstModel(RuleBasedStateMachine):
    """Each operation goes to one of several processes at the store, and to the model with what that process owns."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="tailmark-")
        self._stores: list[Store] = []
        self._owned: list[Process] = [Process()] * PROCESSES
        self._began: dict[tuple[SessionId, PlanId], int] = {}

    @initialize(random=st.randoms(use_true_random=False))
    def open(self, random: Random) -> None:
        """An empty store with two sessions, opened by every process."""
        path = Path(self._folder.name) / "store.sqlite"
        model, settings = contents.sizes(random, frozenset(CAPABILITIES))
        self._stores = [Store.open(path) for _ in range(PROCESSES)]
        for session in SESSIONS:
            assert self._stores[0].add_session(session, model, settings) == Done()
        self._world = empty_world(SESSIONS, model, settings)
        self._observation = self._seen(0)
        self._known = Known(difference(NOTHING, self._observation))
        self._walk = Walk(self._known, random)
        self._random = random

    @rule(who=st.integers(0, PROCESSES - 1), loyal=st.booleans())
    def perform(self, who: int, loyal: bool) -> None:
        """Outcome, views of the process that acted, and views of a fresh process are the model's."""
        operation = self._walk.next()
        if loyal and isinstance(operation, CommitCompaction):
            # A plan is known to the process that began it alone; half of the commits go anywhere.
            who = self._began.get((operation.plan.session, operation.plan.id), who)
        before = evolve(self._world, process=self._owned[who])
        world, expected = step(before, operation)
        outcome = self._stores[who].perform(operation)
        assert outcome == expected, operation
        self._world = world
        self._owned[who] = world.process
        plan = begun_plan(outcome)
        if plan is not None:
            self._began[plan.session, plan.id] = who
        self._compare(who, operation, outcome)

    def _compare(self, who: int, operation: Operation, outcome: Outcome) -> None:
        now = self._seen(who)
        assert now == Observer().observe(self._world)
        fresh = self._stores[who].observe_fresh()
        nothing_runs = evolve(self._world, process=Process())
        assert fresh == Observer().observe(nothing_runs)
        if not isinstance(outcome, Done | Sent | Committed):
            assert _durable(now) == _durable(self._observation), "a refusal changes nothing"
        change = difference(self._observation, now)
        self._known.feed(Step(operation=operation, outcome=outcome, change=change))
        self._observation = now

    def _seen(self, who: int) -> Observation:
        return self._stores[who].observe()

    @override
    def teardown(self) -> None:
        """Close every process and drop the file."""
        for store in self._stores:
            store.close()
        self._folder.cleanup()


def _durable(observation: Observation) -> Observation:
    return evolve(observation, sessions=tuple(evolve(view, running=None) for view in observation.sessions))


TestStoreAgainstModel = StoreAgainstModel.TestCase
