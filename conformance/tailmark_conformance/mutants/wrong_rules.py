"""All wrong rules."""

from tailmark_conformance.mutants.wrong_branching import BRANCHING
from tailmark_conformance.mutants.wrong_compaction import COMPACTION
from tailmark_conformance.mutants.wrong_requests import REQUESTS
from tailmark_conformance.mutants.wrong_rule import WrongRule
from tailmark_conformance.mutants.wrong_saving import SAVING
from tailmark_conformance.mutants.wrong_sizes import SIZES

WRONG_RULES: tuple[WrongRule, ...] = (*SAVING, *COMPACTION, *BRANCHING, *SIZES, *REQUESTS)
"""Every wrong rule of the model."""
