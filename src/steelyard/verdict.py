"""The answer of a filter for one host."""

import dataclasses

__all__ = ["PASSED", "Verdict"]


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a host: passed, or rejected for a reason.

    ``reason`` is one readable line, empty for a host that passed. ``cause`` is the reason without
    details of this host, so that equal causes can be counted over many hosts; it defaults to the
    reason. ``key`` is the extra spec or metadata key that decided, such as ``ssd`` or
    ``trait:HW_GPU``, empty if none did. The truth value is ``passed``.
    """

    passed: bool
    reason: str = ""
    cause: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        if self.passed and self.reason:
            raise ValueError(f"unexpected reason {self.reason!r} for a host that passed")
        if not self.passed and not self.reason:
            raise ValueError("missing reason of a rejection")
        if not self.cause:
            object.__setattr__(self, "cause", self.reason)

    @classmethod
    def rejected(cls, reason: str, cause: str = "", *, key: str = "") -> "Verdict":
        """Return a rejection; ``cause`` defaults to the reason."""
        return cls(False, reason, cause, key)

    def __bool__(self) -> bool:
        return self.passed


PASSED = Verdict(True)
