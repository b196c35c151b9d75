"""The reported faults and the mutants that stand for them, as the tables in ``docs/field-reports.md``.

Run ``uv run python conformance/benchmarks/field_reports.py > docs/field-reports.md``.
"""

from tailmark_conformance.mutants.reported.page import page

if __name__ == "__main__":
    print(page(), end="")
