"""The page that shows a decision: what is on it, and how it is written as HTML."""

from typing import TYPE_CHECKING

from steelyard import extras
from steelyard.desk.page.building import view_of
from steelyard.desk.page.view import View

if TYPE_CHECKING:
    from steelyard.desk.page.rendering import render

__all__ = ["View", "render", "view_of"]

__getattr__ = extras.lazily("steelyard.desk.page", {"render": ("rendering", "desk")})
