"""The live page as a WSGI application.

It is read-only and has no access control: every client sees the whole cloud. It accepts only the
host names that it is served under, and no requests that a page of another site makes through the
reader's browser.
"""

import dataclasses
import ipaddress
import traceback
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any
from wsgiref.types import WSGIApplication

import falcon
from oslo_log import log as logging

from steelyard import errors
from steelyard.cloud import Cloud, change_texts, changes, garbage
from steelyard.cloud.changes import Change
from steelyard.page import whatif
from steelyard.page.building import view_of
from steelyard.page.commands import Invocation
from steelyard.page.compression import Compression
from steelyard.page.rendering import (
    policy,
    render,
    render_capacity,
    render_problem,
    render_whatif,
)
from steelyard.page.rooms import breakdowns
from steelyard.page.served_cloud import ServedCloud
from steelyard.page.view import Form
from steelyard.page.whatif import ChangesForm, WhatIfView
from steelyard.scheduler import NoValidHost
from steelyard.text import spelling

LOG = logging.getLogger(__name__)

_METHODS = ["GET", "HEAD"]
# Each change copies a part of the cloud.
_MOST_CHANGES = 50
# The characters at the start and at the end of a long message.
_MOST_SHOWN = (300, 200)
_MISTAKES = (errors.BadRequest, errors.NotFound, errors.Conflict)
_PAGES = "the pages are at /, /capacity and /whatif"
_HEADERS = {
    "Content-Security-Policy": f"{policy(live=True)}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_Name = str | ipaddress.IPv4Address | ipaddress.IPv6Address


def make_application(
    current: Callable[[], ServedCloud],
    allowed_hosts: "AllowedHosts",
    source: str = "",
    invocation: Invocation | None = None,
) -> WSGIApplication:
    """Return the WSGI application.

    ``current`` is called for each request. It returns the current cloud, or raises InvalidCloud,
    which the page reports. ``source`` is the name of the cloud on the page; ``invocation`` has the
    options that choose it, by default ``--cloud`` with this name.
    """
    chosen = Invocation(options=[("--cloud", source)]) if invocation is None else invocation
    middleware: list[Any] = [Compression(), _Gate(allowed_hosts)]
    app = falcon.App(middleware=middleware)
    app.add_route("/", _Page(current, source))
    app.add_route("/capacity", _Capacity(current, source))
    app.add_route("/whatif", _WhatIf(current, source, chosen))
    app.set_error_serializer(_serialize_error)
    app.add_error_handler(Exception, _log_unexpected)
    app.add_error_handler(errors.InvalidCloud, _unreadable)
    return app


class AllowedHosts:
    """The names and addresses that are accepted in the header ``Host``, with any port.

    An application that listens on all addresses accepts any address. That is safe: DNS rebinding,
    where a browser sends requests of another site here, needs a name.
    """

    def __init__(self, *names: str) -> None:
        self._names = frozenset(map(_parsed, names))
        self._any_address = any(
            not isinstance(name, str) and name.is_unspecified for name in self._names
        )
        self._this_machine = self._any_address or any(map(_is_this_machine, self._names))

    def __contains__(self, host: str) -> bool:
        try:
            name = _parsed(urllib.parse.urlsplit(f"//{host}").hostname or "")
        except ValueError:
            return False
        if _is_this_machine(name):
            return self._this_machine
        return name in self._names or (self._any_address and not isinstance(name, str))

    def __str__(self) -> str:
        return ", ".join(sorted(map(str, self._names)))


def _parsed(name: str) -> _Name:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return name.lower()


def _is_this_machine(name: _Name) -> bool:
    return name == "localhost" if isinstance(name, str) else name.is_loopback


class _Gate:
    """Middleware that rejects wrong hosts, origins and methods, and sets the security headers."""

    def __init__(self, allowed_hosts: AllowedHosts) -> None:
        self._allowed_hosts = allowed_hosts

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        host = req.get_header("Host") or ""
        if host not in self._allowed_hosts:
            raise falcon.HTTPError(
                falcon.HTTP_421,
                title="Unknown host name",
                description=f"the request is for host {host!a}, but this server accepts "
                f"{self._allowed_hosts}; to serve another name, start it with --host NAME",
            )
        # Browsers send the header to this machine and over HTTPS; other programs do not send it.
        if req.get_header("Sec-Fetch-Site") == "cross-site":
            raise falcon.HTTPForbidden(
                title="Request from another site",
                description="the request comes from a page of another site; to open this page, "
                "enter its address in the browser",
            )
        if req.method not in _METHODS:
            raise falcon.HTTPMethodNotAllowed(
                _METHODS,
                title="Method not allowed",
                description="the page supports GET and HEAD only",
            )

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, *_outcome: object
    ) -> None:
        resp.set_headers(_HEADERS)


class _Page:
    """The page for the flavor and server group in the query."""

    def __init__(self, current: Callable[[], ServedCloud], source: str) -> None:
        self._current = current
        self._source = source

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        served = self._current()
        form = _form(served.scheduler.cloud, req)
        if form.flavor is None:
            message = f"add one under 'flavors' in {self._source}"
            _problem(resp, 200, "The cloud has no flavors", message, form)
            return
        try:
            marked = dataclasses.replace(form, fitting_nowhere=served.fitting_nowhere)
            _show(resp, self._decided(served, form.flavor, marked))
        except errors.PolicyNotSupported as error:  # a valid result, hence status 200
            _problem(resp, 200, "The policy of the server group is not supported", str(error), form)
        except errors.NotFound as error:
            _problem(resp, 404, "Not found in this cloud", str(error), form)
        except errors.PluginError as error:
            _problem(resp, 500, "A plugin failed", str(error), form)

    on_head = on_get

    @garbage.paused()
    def _decided(self, served: ServedCloud, flavor: str, form: Form) -> str:
        scheduler = served.scheduler
        request = scheduler.request(flavor, form.group)
        try:
            (decision,) = scheduler.select(request).decisions
        except NoValidHost as error:
            decision = error.decision
        room = served.room(flavor, form.group)
        view = view_of(decision, scheduler, self._source, served.modified, room)
        return render(view, form)


class _Capacity:
    """The page with the room for all flavors, by the aggregate or metadata key in the query."""

    def __init__(self, current: Callable[[], ServedCloud], source: str) -> None:
        self._current = current
        self._source = source

    @garbage.paused()
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        served = self._current()
        names = breakdowns(served.scheduler.cloud)
        by = req.get_param("by") or names[0]
        if by not in names:
            near = spelling.near(by, names)
            message = f"no aggregate has the metadata key {by!r}{near}"
            _problem(resp, 404, "Not found in this cloud", message)
            return
        try:
            table = served.table(by)
        except errors.PluginError as error:
            _problem(resp, 500, "A plugin failed", str(error))
            return
        _show(resp, render_capacity(table, by, names, self._source, served.modified))

    on_head = on_get


class _WhatIf:
    """The page for the consequences of the changes in the query."""

    def __init__(
        self, current: Callable[[], ServedCloud], source: str, invocation: Invocation
    ) -> None:
        self._current = current
        self._source = source
        self._invocation = invocation

    @garbage.paused()
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        served = self._current()
        cloud = served.scheduler.cloud
        tried = _tried(cloud, _changes_form(req))
        found, problem = None, tried.problem
        if tried.after is not None:
            try:
                found = served.consequences(tried.after)
            except errors.PolicyNotSupported as error:  # a valid result, hence no other status
                problem = str(error)
            except errors.PluginError as error:
                _problem(resp, 500, "A plugin failed", str(error))
                return
        view = WhatIfView(
            found,
            self._invocation.command_line("whatif", tried.form.changes),
            domains=served.scheduler.failure_domains,
            source=self._source,
            modified=served.modified,
            problem=problem,
            form=dataclasses.replace(tried.form, suggestions=whatif.suggestions(cloud)),
        )
        _show(resp, render_whatif(view), tried.status)

    def on_head(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Respond without the consequences, because they are expensive."""
        tried = _tried(self._current().scheduler.cloud, _changes_form(req))
        resp.status = falcon.code_to_http_status(tried.status)
        resp.content_type = falcon.MEDIA_HTML
        resp.stream = iter(())  # falcon sends a length of 0 without a stream, which is wrong


def _changes_form(req: falcon.Request) -> ChangesForm:
    """Return the changes in the query, and the one that was typed last."""
    changes = [text.partition(" ") for text in req.get_param_as_list("change") or ()]
    form = ChangesForm(
        tuple((option, value) for option, _, value in changes),
        req.get_param("option") or "",
        (req.get_param("value") or "").strip(),
    )
    if len(form.changes) + bool(form.option) > _MOST_CHANGES:
        raise falcon.HTTPBadRequest(
            title="Too many changes",
            description=f"the page tries at most {_MOST_CHANGES} changes; for more, write them to "
            f"a file, and run 'steelyard whatif --changes FILE'",
        )
    return form


@dataclasses.dataclass(frozen=True)
class _Tried:
    """The changes of a form, applied to a cloud."""

    form: ChangesForm
    after: Cloud | None
    """The cloud after the changes; None if there are none, or if they cannot be applied."""
    problem: str = ""
    """The error in the changes before the typed one."""

    @property
    def status(self) -> int:
        return 400 if self.problem or self.form.mistake else 200


def _tried(cloud: Cloud, form: ChangesForm) -> _Tried:
    """Apply the changes of the form to the cloud; a mistyped last one is left out."""
    try:
        after = _changed(cloud, form.changes)
    except _MISTAKES as error:
        return _Tried(form, None, _shortened(str(error)))
    if form.option:
        typed = (form.option, form.value)
        try:
            after = _changed(after, [typed])
            form = ChangesForm((*form.changes, typed), form.option)
        except _MISTAKES as error:
            form = dataclasses.replace(form, mistake=_shortened(str(error)))
    return _Tried(form, after if form.changes else None)


def _changed(cloud: Cloud, wanted: Sequence[tuple[str, str]]) -> Cloud:
    """Return the cloud after the changes.

    Raises BadRequest for an unknown or malformed change, and NotFound or Conflict for one that
    cannot be applied.
    """
    return changes.applied(
        cloud, ((f"{option} {value}", _change(option, value, cloud)) for option, value in wanted)
    )


def _change(option: str, value: str, cloud: Cloud) -> Change:
    found = change_texts.OPTIONS.get(option)
    if found is None:
        raise errors.BadRequest(
            f"unknown change {option!r}{spelling.near(option, change_texts.OPTIONS)}", option
        )
    if not value:
        raise errors.BadRequest(f"missing value of {option}: expected {found.expected}")
    if "\0" in value:
        raise errors.BadRequest(
            f"invalid value {value!r}: a command line cannot contain null characters", value
        )
    return change_texts.parse(option, value, cloud)


def _shortened(message: str) -> str:
    """Return the message without its middle if it quotes a very long value."""
    start, end = _MOST_SHOWN
    return message if len(message) <= start + end else f"{message[:start]} … {message[-end:]}"


def _unreadable(
    req: falcon.Request, resp: falcon.Response, error: errors.InvalidCloud, params: object
) -> None:
    _problem(resp, 503, "Cannot read the cloud", str(error))


def _form(cloud: Cloud, req: falcon.Request) -> Form:
    """Return the choices and the selection, by default the first flavor and no group."""
    flavor = req.get_param("flavor") or next(iter(cloud.flavors), None)
    group = req.get_param("group") or None
    return Form(tuple(cloud.flavors), tuple(cloud.server_groups), flavor, group)


def _show(resp: falcon.Response, page: str, status: int = 200) -> None:
    resp.status = falcon.code_to_http_status(status)
    resp.content_type = falcon.MEDIA_HTML
    resp.data = page.encode()


def _problem(
    resp: falcon.Response, status: int, title: str, message: str, form: Form | None = None
) -> None:
    _show(resp, render_problem(title, message, form), status)


def _serialize_error(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError) -> None:
    _problem(resp, error.status_code, error.title or "", error.description or _PAGES)


def _log_unexpected(
    req: falcon.Request, resp: falcon.Response, error: Exception, params: object
) -> None:
    """Log an unexpected exception, and respond without its details."""
    # The message may contain control characters, so it is logged in ASCII with escapes.
    where = "".join(traceback.format_tb(error.__traceback__))
    LOG.error(
        "Internal error in %s %a: %s: %a\n%s",
        req.method,
        req.path,
        type(error).__name__,
        str(error),
        where,
    )
    _problem(resp, 500, "Internal error", "see the log of the server")
