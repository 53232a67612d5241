"""The answer of a filter for one host."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """Passed or not, and for a rejection why.

    ``reason`` is one readable line, empty for a host that passed. ``cause`` is the same without
    what is particular to this host, so that equal causes can be counted over many hosts; it is
    the reason itself unless given. A verdict's truth value is ``passed``.
    """

    passed: bool
    reason: str = ""
    cause: str = ""

    def __post_init__(self) -> None:
        if self.passed and self.reason:
            raise ValueError(f"a verdict that passed has no reason, but got {self.reason!r}")
        if not self.passed and not self.reason:
            raise ValueError("a rejection needs a reason")
        if not self.cause:
            object.__setattr__(self, "cause", self.reason)

    @classmethod
    def rejected(cls, reason: str, cause: str = "") -> "Verdict":
        return cls(False, reason, cause)

    def __bool__(self) -> bool:
        return self.passed


PASSED = Verdict(True)
