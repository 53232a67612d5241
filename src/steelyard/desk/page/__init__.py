"""The page that shows a decision: what is on it, and how it is written as HTML."""

from typing import TYPE_CHECKING, Any

from steelyard import extras
from steelyard.desk.page.building import view_of
from steelyard.desk.page.view import View

if TYPE_CHECKING:
    from steelyard.desk.page.rendering import render

__all__ = ["View", "render", "view_of"]


def __getattr__(name: str) -> Any:
    """Import the function that needs an extra when it is first used."""
    if name == "render":
        with extras.required("cli", "the decision page"):
            from steelyard.desk.page.rendering import render  # noqa: PLC0415  (an extra)
        return render
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
