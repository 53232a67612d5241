"""UUIDs, as strictly as Placement reads them, and without the extra that bodies need."""

import re
import uuid

_DIGITS = re.compile("[0-9a-fA-F]{32}")


def canonical(text: str) -> str | None:
    """The UUID as it is written in the tables; None if the text is none."""
    digits = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    # By itself, UUID takes what int takes: signs, spaces, underscores, the digits of any script.
    return str(uuid.UUID(digits)) if _DIGITS.fullmatch(digits) else None
