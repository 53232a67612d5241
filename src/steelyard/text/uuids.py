"""UUIDs, read as strictly as Placement reads them."""

import re
import uuid

_DIGITS = re.compile("[0-9a-fA-F]{32}")
_EXAMPLE = "5e08ea53-c4c6-448e-9334-ac4953de3cfa"


def read(text: str) -> str:
    """Return the UUID in its canonical form; raise ValueError with the reason if it is invalid."""
    found = canonical(text)
    if found is None:
        raise ValueError(f"invalid UUID {text!r:.100}: expected one such as {_EXAMPLE}")
    return found


def same(one: str, other: str) -> bool:
    """Return whether two texts name the same resource provider in Placement.

    Placement compares the texts, so dashes count. Case does not count, because MySQL ignores it.
    """
    return one.lower() == other.lower()


def canonical(text: str) -> str | None:
    """Return the UUID in lower case with dashes; None if the text is invalid."""
    digits = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    # uuid.UUID alone accepts what int accepts: signs, spaces, underscores, digits of any script.
    return str(uuid.UUID(digits)) if _DIGITS.fullmatch(digits) else None
