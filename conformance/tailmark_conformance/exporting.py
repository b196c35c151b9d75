"""Takes the readable part of a session out of a store of the reference: what `tailmark export` does (DMG-7)."""

from contextlib import closing
from pathlib import Path

from rich.console import Console

from tailmark.identifiers import SessionId
from tailmark.outcomes import Done
from tailmark_conformance.checking import UsageError
from tailmark_reference.store.connection import StoreError
from tailmark_reference.store.store import Store


def export_session(store: Path, session: str, new: Path, console: Console) -> None:
    """Write the readable part to a new store, and print how much that was. Raises `UsageError` with one clear line."""
    # A store is made where none is, and a slip of the pen is to make none.
    if not store.is_file():
        raise UsageError(f"{store}: no such file: name a store")
    try:
        with closing(Store.open(store)) as opened:
            if opened.export(SessionId(session), new) != Done():
                raise UsageError(f"{store}: no session {session!r}: name one of the store's")
        with closing(Store.open(new)) as made:
            (view,) = made.observe().sessions
    except StoreError as error:
        raise UsageError(str(error)) from None
    console.print(
        f"{new}: {session}, {len(view.branch)} nodes up to {view.leaf}", markup=False, soft_wrap=True
    )
