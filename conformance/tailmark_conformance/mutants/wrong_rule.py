"""A rule of the model replaced by a wrong one.

A mutant is a sentence and a change of `tailmark_reference.model.rules.Rules`. It stands for a fault that an
implementation could have; the sentence says what that implementation does.
"""

from attrs import frozen

from tailmark_reference.model.rules import Rules


@frozen(kw_only=True)
class WrongRule:
    """One fault: its id, what such an implementation does, and the rules that do it."""

    id: str
    sentence: str
    rules: Rules


def wrong(identifier: str, sentence: str, rules: Rules) -> WrongRule:
    """A `WrongRule` in one line."""
    return WrongRule(id=identifier, sentence=sentence, rules=rules)
