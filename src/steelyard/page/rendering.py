"""The page as one HTML file that loads nothing else.

Names and metadata are escaped, so they appear as text only. Unprintable characters are shown as in
Python (``\\x00``, ``\\u202e``). The content security policy allows only the page's own style and
script.
"""

import base64
import datetime
import functools
import hashlib
import importlib.resources
import re
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2

import steelyard
from steelyard.cloud import change_texts
from steelyard.page import whatif
from steelyard.page.columns import as_json, columns
from steelyard.page.view import Form, View
from steelyard.page.whatif import WhatIfView
from steelyard.resources import described
from steelyard.text import escapes
from steelyard.text.wording import plain

_HERE = importlib.resources.files("steelyard.page")
_SCRIPTS = ("elements", "hosts", "details", "map", "table", "choice", "room", "changes", "page")
"""The parts of the script, in their order."""
_PLAIN_ROWS = 200
"""The number of hosts that can be read without the script."""
_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def render(view: View, form: Form | None = None) -> str:
    """Return the HTML of the page for a decision. With a form, it is the live page."""
    template = _environment().get_template("decision.html")
    return template.render(
        view=view,
        form=form,
        data=as_json(columns(view)),
        plain_rows=_PLAIN_ROWS,
        live=form is not None,
        here="/",
        policy=policy(live=form is not None),
    )


def render_capacity(
    table: Mapping[str, Any],
    by: str,
    breakdowns: Sequence[str],
    source: str = "",
    modified: datetime.datetime | None = None,
) -> str:
    """Return the HTML of the live page with the room for all flavors, by one of the breakdowns."""
    template = _environment().get_template("capacity.html")
    return template.render(
        table=table,
        data=as_json(table),
        by=by,
        breakdowns=breakdowns,
        source=source,
        modified=modified,
        form=None,
        live=True,
        here="/capacity",
        policy=policy(live=True),
    )


def render_whatif(view: WhatIfView) -> str:
    """Return the HTML of the page for changes. With a form, it is the live page."""
    template = _environment().get_template("whatif.html")
    return template.render(
        view=view,
        data=as_json(whatif.columns(view)) if view.found else "",
        options=change_texts.OPTIONS,
        form=None,
        live=view.form is not None,
        here="/whatif",
        policy=policy(live=view.form is not None),
    )


def render_problem(title: str, message: str, form: Form | None = None) -> str:
    """Return the HTML of a page that explains why there is no decision."""
    template = _environment().get_template("problem.html")
    return template.render(
        title=title, message=message, form=form, live=True, here="", policy=policy(live=True)
    )


def policy(*, live: bool) -> str:
    """Return the content security policy of a page.

    A live page may connect to its own server, other pages to none.
    """
    where = "'self'" if live else "'none'"
    directives = {
        "default-src": "'none'",
        "style-src": _hash(_asset("page.css")),
        "script-src": _hash(_script()),
        "img-src": "data:",
        "connect-src": where,
        "form-action": where,
        "base-uri": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("steelyard.page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=printable,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["count"] = "{:,}".format
    environment.filters["words"] = _BETWEEN_WORDS.split
    environment.filters["short"] = functools.partial(plain, digits=4)
    environment.filters["raw"] = functools.partial(plain, digits=6)
    environment.filters["place"] = lambda number: f"{number:.2f}".rstrip("0").rstrip(".")
    environment.globals.update(
        style=_asset("page.css"),
        script=_script(),
        version=steelyard.__version__,
        described=described,
    )
    return environment


def printable(value: Any) -> Any:
    """Return text with unprintable characters escaped, and any other value unchanged."""
    # Markup is a subclass of str and comes from the templates.
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return escapes.printable(value)


@functools.cache
def _script() -> str:
    """Return the script, whose parts share one scope."""
    parts = "".join(_asset(f"scripts/{name}.js") for name in _SCRIPTS)
    scripted = 'document.documentElement.classList.add("scripted");'
    return f'"use strict";\n{{\n{scripted}\n{parts}}}\n'


@functools.cache
def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


@functools.cache
def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
