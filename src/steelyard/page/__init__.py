"""The pages that show a decision and the consequences of changes: their content, and as HTML."""

from typing import TYPE_CHECKING, Any

from steelyard import extras
from steelyard.page.building import view_of
from steelyard.page.view import View

if TYPE_CHECKING:
    from steelyard.page.rendering import render, render_whatif

__all__ = ["View", "render", "render_whatif", "view_of"]

_OF_RENDERING = frozenset({"render", "render_whatif"})


def __getattr__(name: str) -> Any:
    """Import the functions that need an extra on first use."""
    if name in _OF_RENDERING:
        with extras.required("cli", "the decision page"):
            from steelyard.page import rendering  # noqa: PLC0415  (an extra)
        return getattr(rendering, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
