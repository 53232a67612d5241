"""How numbers and names are put for people."""


def counted(count: int, what: str) -> str:
    """So many of them."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def listed(names: list[str], most: int = 3) -> str:
    """The names for people, the first few of many."""
    more = len(names) - most
    shown = ", ".join(map(repr, names[:most]))
    return f"{shown} and {more} more" if more > 0 else shown
