"""Writes the stored examples of all clauses anew: ``python -m tailmark_conformance.scenarios``."""

from importlib.resources import files
from pathlib import Path

from tailmark_conformance.scenarios.writing import SCENARIOS, play_example


def main() -> None:
    """Play every scenario on the model and write what happened into the package of the specification."""
    folder = Path(str(files("tailmark"))) / "clauses" / "examples"
    folder.mkdir(exist_ok=True)
    for clause in SCENARIOS:
        (folder / f"{clause}.json").write_bytes(play_example(clause).to_bytes() + b"\n")
    for path in folder.glob("*.json"):
        if path.stem not in SCENARIOS:
            path.unlink()
    print(f"{len(SCENARIOS)} examples")


if __name__ == "__main__":
    main()
