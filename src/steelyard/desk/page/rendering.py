"""The page as HTML: one file that asks for nothing from anywhere.

Whatever names and metadata hold is text on the page and nothing else: all of it is escaped, and
what cannot be printed is shown as Python writes it (``\\x00``, ``\\u202e``). The page's own style
and script are the only ones that its policy lets run.
"""

import base64
import functools
import hashlib
import importlib.resources
import re
from typing import Any

import jinja2

import steelyard
from steelyard.desk.page.view import BAR_WIDTH, Form, View

_HERE = importlib.resources.files("steelyard.desk.page")
_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def render(view: View, form: Form | None = None) -> str:
    """The page that shows the decision; with a form, the live one."""
    template = _environment().get_template("decision.html")
    return template.render(view=view, form=form, policy=policy(live=form is not None))


def render_problem(title: str, message: str, form: Form | None = None) -> str:
    """The page that says why there is no decision to show."""
    template = _environment().get_template("problem.html")
    return template.render(title=title, message=message, form=form, policy=policy(live=True))


def policy(*, live: bool) -> str:
    """The content security policy of a page; a live one may ask where it comes from, only it."""
    where = "'self'" if live else "'none'"
    directives = {
        "default-src": "'none'",
        "style-src": _hash(_asset("page.css")),
        "script-src": _hash(_asset("page.js")),
        "img-src": "data:",
        "connect-src": where,
        "form-action": where,
        "base-uri": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("steelyard.desk.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["count"] = "{:,}".format
    environment.filters["words"] = _BETWEEN_WORDS.split
    environment.filters["short"] = "{:.4g}".format
    environment.filters["raw"] = "{:.6g}".format
    environment.filters["place"] = lambda number: f"{number:.2f}".rstrip("0").rstrip(".")
    environment.globals.update(
        style=_asset("page.css"),
        script=_asset("page.js"),
        version=steelyard.__version__,
        bar_width=BAR_WIDTH,
    )
    return environment


def printable(value: Any) -> Any:
    """Text with what cannot be printed spelled out; anything else as it is."""
    # Markup, which is text as well, is the page's own.
    if not isinstance(value, str) or hasattr(value, "__html__") or value.isprintable():
        return value
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in value)


@functools.cache
def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


@functools.cache
def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
