"""A subject that says something else of itself than it does."""

from tailmark.declarations import Declaration
from tailmark.subjects import Subject


class Declaring:
    """Another subject under this declaration."""

    def __init__(self, subject: Subject, declaration: Declaration) -> None:
        self.declaration = declaration
        self.reset = subject.reset
        self.perform = subject.perform
        self.observe = subject.observe
        self.observe_fresh = subject.observe_fresh
        self.close = subject.close
