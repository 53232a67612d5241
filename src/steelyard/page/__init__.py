"""The page that shows a decision: its content, and its form as HTML."""

from typing import TYPE_CHECKING, Any

from steelyard import extras
from steelyard.page.building import view_of
from steelyard.page.view import View

if TYPE_CHECKING:
    from steelyard.page.rendering import render

__all__ = ["View", "render", "view_of"]


def __getattr__(name: str) -> Any:
    """Import ``render`` on first use, because it needs an extra."""
    if name == "render":
        with extras.required("cli", "the decision page"):
            from steelyard.page.rendering import render  # noqa: PLC0415  (an extra)
        return render
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
