"""How a subject in another process can fail to answer."""


class WireError(Exception):
    """The subject gave no answer that could be read. The text says what was seen and what was expected."""


class CrashError(WireError):
    """The process ended, or is of no more use."""


class AnsweredError(WireError):
    """The adapter answered with an error. It goes on."""


class HangError(WireError):
    """No answer came in time."""


class ProtocolError(WireError):
    """What came is not what the protocol asks for (docs/wire.md)."""


class StartError(WireError):
    """There is no such program, or it cannot be run."""


class SchemaError(Exception):
    """The suite itself wrote a line that its schemas refuse. It is no failure of the subject."""
