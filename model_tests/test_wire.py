"""What is seen over the wire is what is seen in the process."""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final

import pytest
from attrs import frozen

from tailmark.budgets import Model, Settings
from tailmark.declarations import Capability
from tailmark.identifiers import ModelName, NodeId, PartId, SessionId
from tailmark.messages import Message, Role, Text
from tailmark.operations import Append, Restart
from tailmark.outcomes import Done
from tailmark.subjects import Subject
from tailmark.wire import Observe, Perform
from tailmark_conformance.examination import ClauseReport, examine, selection_of
from tailmark_conformance.explorers.generated import Effort, Source, explore
from tailmark_conformance.subjects.calls import Call, request_line, results_of
from tailmark_conformance.subjects.declaring import Declaring
from tailmark_conformance.subjects.failures import AnsweredError, ProtocolError
from tailmark_conformance.subjects.serving import Server
from tailmark_conformance.subjects.stdio import StdioSubject
from tailmark_conformance.subjects.targets import Target, served

SERVE: Final = (sys.executable, "-m", "tailmark_conformance", "serve")
EFFORT: Final = Effort(seed=1, examples=20, steps=30, workers=1)
SESSION: Final = SessionId("S1")
MODEL: Final = Model(name=ModelName("m"))


@frozen(kw_only=True)
class _Here:
    """What is served under a name, in this process."""

    name: str
    folder: Path
    is_reference: bool = False
    shrinking_runs: int = 4_000

    @contextmanager
    def opened(self) -> Iterator[Subject]:
        maker = served(self.name)
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            subject = Declaring(maker.made(Path(folder)), maker.declaration)
            yield subject
            subject.close()


def _clauses(source: Source) -> list[ClauseReport]:
    selection = selection_of()
    exploration = explore(source, selection, EFFORT)
    report = examine(exploration, selection, subject="", profile="", seconds=0.0, store_dir=None)
    return [*report.clauses]


@pytest.mark.parametrize("name", ["reference", "reference:model", "wrong_subjects:forgets_revision"])
def test_the_wire_changes_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report of a program is that of the object which it serves, every trace and figure; and every line fits the schemas."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    there = Target(words=(*SERVE, name), store_dir=tmp_path, validate=True)
    assert _clauses(there) == _clauses(_Here(name=name, folder=tmp_path))


def _hello(name: str) -> Append:
    text = Text(id=PartId("text"), text="hello")
    return Append(session=SESSION, message=Message(id=NodeId(name), role=Role.USER, parts=(text,)))


class TestKills:
    """A killed process is one."""

    def test_another_process_goes_on_with_the_folder(self, tmp_path: Path) -> None:
        """What was stored is there, and the suite did not ask for the end."""
        subject = StdioSubject((*SERVE, "reference"), tmp_path)
        try:
            subject.reset((SESSION,), MODEL, Settings())
            assert subject.perform(_hello("U1")) == Done(written=(NodeId("U1"),))
            before = subject.observe()
            assert subject.perform(Restart(killed=True)) == Done()
            assert subject.observe() == before
            assert subject.perform(_hello("U2")) == Done(written=(NodeId("U2"),))
        finally:
            subject.close()

    def test_who_declares_no_durability_is_asked(self, tmp_path: Path) -> None:
        """The same process does it, in whatever way."""
        subject = StdioSubject((*SERVE, "reference:model"), tmp_path)
        try:
            subject.reset((SESSION,), MODEL, Settings())
            subject.perform(_hello("U1"))
            before = subject.observe()
            assert subject.perform(Restart(killed=True)) == Done()
            assert subject.observe() == before
        finally:
            subject.close()

    def test_nothing_is_left_behind(self, tmp_path: Path) -> None:
        """Neither folders nor processes."""
        subject = StdioSubject((*SERVE, "reference"), tmp_path)
        for _ in range(3):
            subject.reset((SESSION,), MODEL, Settings())
            subject.perform(Restart(killed=True))
        assert len([*tmp_path.iterdir()]) == 1
        subject.close()
        assert [*tmp_path.iterdir()] == []


CALLS: Final = (
    Call(1, "perform", Perform(operation=_hello("U1"))),
    Call(2, "observe", Observe()),
    Call(3, "perform", Perform(operation=_hello("U1"))),
)


class TestBatches:
    """A list of requests on one line is answered by a list of responses."""

    def _answer(self) -> bytes:
        server = Server(served("reference:model"))
        reset = {"sessions": [SESSION], "model": {"name": "m"}, "store_dir": "/nowhere"}
        server.answer(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "reset", "params": reset}).encode())
        return server.answer(request_line(CALLS))

    def test_results_have_the_order_of_the_calls(self) -> None:
        """Whatever the order of the responses is."""
        line = self._answer()
        expected = results_of(line, CALLS, ())
        for seed in range(5):
            responses = json.loads(line)
            Random(seed).shuffle(responses)
            assert results_of(json.dumps(responses).encode(), CALLS, ()) == expected

    def test_an_error_is_of_one_call_alone(self) -> None:
        """The others have their results."""
        responses = json.loads(self._answer())
        responses[1] = {"jsonrpc": "2.0", "id": 2, "error": {"code": -32000, "message": "not today"}}
        results = results_of(json.dumps(responses).encode(), CALLS, ())
        assert [isinstance(result, AnsweredError) for result in results] == [False, True, False]

    @pytest.mark.parametrize(
        "broken", ["one less", "twice the same", "no list", "an empty list", "no object"]
    )
    def test_anything_else_is_a_protocol_error(self, broken: str) -> None:
        """A response for each request, with its id."""
        responses = json.loads(self._answer())
        answer = {
            "one less": responses[:-1],
            "twice the same": [responses[0], responses[0], responses[2]],
            "no list": responses[0],
            "an empty list": [],
            "no object": [responses[0], 7, responses[2]],
        }[broken]
        with pytest.raises(ProtocolError, match="in a batch of 3: expected"):
            results_of(json.dumps(answer).encode(), CALLS, ())

    def test_the_server_declares_them(self) -> None:
        """And `Server` answers an empty list with an error."""
        assert Capability.BATCH in served("reference").declaration.capabilities
        assert b"-32600" in Server(served("reference:model")).answer(b"[]")
