"""A short name for a fault, by which it is known again in another run, in a capsule and in a baseline."""

from typing import NewType

from tailmark import json_form
from tailmark.operations import CommitCompaction
from tailmark_conformance.explorers.generated import Found
from tailmark_conformance.explorers.scripts import BoundCommit, Entry

Fingerprint = NewType("Fingerprint", str)
"""Sixteen hexadecimal digits."""


def fingerprint(found: Found) -> Fingerprint:
    """Of the clause and the kinds of operations in the smallest run that shows its fault.

    Ids, texts and sizes have no part in it, so that another seed, another machine and a later release
    that breaks the same clause in the same way give the same one.
    """
    kinds = [_kind(entry) for entry in found.run.script.entries]
    return Fingerprint(json_form.digest([found.fault.clause, found.fault.signature, *kinds]))


def _kind(entry: Entry) -> str:
    return CommitCompaction.kind if isinstance(entry, BoundCommit) else entry.kind
