"""What a public report of a fault becomes here."""

from collections.abc import Callable
from typing import TypeAlias

from attrs import evolve, fields, frozen

from tailmark_conformance.mutants.reported.faulty import Faulty
from tailmark_conformance.mutants.wrong_rule import WrongRule
from tailmark_conformance.mutants.wrong_rules import WRONG_RULES
from tailmark_conformance.scenarios.playing import Play
from tailmark_reference.model.rules import RULES, Rules

Mutant: TypeAlias = WrongRule | Faulty
"""A wrong implementation: the model with a wrong rule, or a subject that does something wrong around it."""

_BY_ID = {one.id: one for one in WRONG_RULES}


@frozen(kw_only=True)
class Report:
    """A reported fault that operations can express.

    ``link`` names the public thread, ``fault`` says in our words what goes wrong there. ``script`` plays the sequence. On the
    ``mutant`` it violates each of ``clauses``; on a right implementation each of them holds.
    """

    id: str
    link: str
    fault: str
    clauses: tuple[str, ...]
    script: Callable[[Play], object]
    mutant: Mutant


@frozen(kw_only=True)
class Unexpressed:
    """A reported fault that no operation can show, and why."""

    id: str
    link: str
    fault: str
    why: str


def rule(identifier: str) -> WrongRule:
    """The wrong rule of that id; `KeyError` if there is none."""
    return _BY_ID[identifier]


def together(*identifiers: str) -> Rules:
    """The rules with several wrong ones at once, each of another field."""
    rules = RULES
    for identifier in identifiers:
        wrong = rule(identifier).rules
        for one in fields(Rules):
            if getattr(wrong, one.name) is not getattr(RULES, one.name):
                rules = evolve(rules, **{one.name: getattr(wrong, one.name)})
    return rules
