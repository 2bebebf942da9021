"""The three ways in which something can be wrong, by whose fault it is."""


class VertumnusError(Exception):
    """Base of the errors that Vertumnus raises on purpose."""


class ConfigError(VertumnusError):
    """The user's to mend: a key, line or flag, what was found there and what is allowed.

    Carries every problem found, one line each; the command line prints them and exits 2.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ProtocolError(VertumnusError):
    """A fact or message that cannot follow the ones before it; the state is unchanged."""


class InvariantError(VertumnusError):
    """Our bug: the books do not balance."""
