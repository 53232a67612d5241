"""How bad a finding is."""

import enum


class Severity(enum.StrEnum):
    ERROR = "error"
    """Something does not work as it stands."""
    WARNING = "warning"
    """Something works, and probably not as it is meant."""
    NOTE = "note"
    """Something to know, and nothing to mend."""
