"""The page that shows a decision, live: a WSGI application for whoever is at the desk.

It is read only, and for one reader or a few: anybody who can ask it sees the whole cloud. So that
no page of somebody else's can ask it through the reader's browser, it answers only to the names
that it is served under.
"""

import ipaddress
import traceback
import urllib.parse
from collections.abc import Callable
from wsgiref.types import WSGIApplication

import falcon
from oslo_log import log as logging

from steelyard import errors
from steelyard.desk.page.building import view_of
from steelyard.desk.page.rendering import policy, render, render_problem
from steelyard.desk.page.view import Form
from steelyard.scheduler import Cloud, FilterScheduler, NoValidHost

LOG = logging.getLogger(__name__)

_METHODS = ["GET", "HEAD"]
_NOTHING_HERE = "There is one page here, at /."
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
    scheduler: Callable[[], FilterScheduler],
    names: "Names",
    source: str = "",
) -> WSGIApplication:
    """The application; ``scheduler`` gives the one to ask now, or raises why there is none."""
    app = falcon.App(middleware=[_Gate(names)])
    app.add_route("/", _Page(scheduler, source))
    app.set_error_serializer(_tell_of_http)
    app.add_error_handler(Exception, _tell_nothing)
    return app


class Names:
    """What an application may be called in the ``Host`` of a request, at whatever port.

    One that is served at all addresses of a machine may be called by any address, which is safe: it
    takes a name to lead somebody's browser astray.
    """

    def __init__(self, *called: str) -> None:
        self._called = frozenset(map(_parsed, called))
        self._everywhere = any(
            not isinstance(name, str) and name.is_unspecified for name in self._called
        )
        self._here = self._everywhere or any(map(_is_this_machine, self._called))

    def __contains__(self, host: str) -> bool:
        try:
            name = _parsed(urllib.parse.urlsplit(f"//{host}").hostname or "")
        except ValueError:
            return False
        if _is_this_machine(name):
            return self._here
        return name in self._called or (self._everywhere and not isinstance(name, str))

    def __str__(self) -> str:
        return ", ".join(sorted(map(str, self._called)))


def _parsed(name: str) -> _Name:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return name.lower()


def _is_this_machine(name: _Name) -> bool:
    return name == "localhost" if isinstance(name, str) else name.is_loopback


class _Gate:
    """Lets in what may be asked, and says with each answer what a browser may make of it."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        host = req.get_header("Host") or ""
        if host not in self._names:
            raise falcon.HTTPError(
                falcon.HTTP_421,
                title="Another server is meant",
                description=f"This one is called {self._names}, and is asked for as {host!a}. "
                f"Start it with --host NAME if NAME is what it should answer to.",
            )
        if req.method not in _METHODS:
            raise falcon.HTTPMethodNotAllowed(
                _METHODS, title="Not so", description="This page can be read, and nothing else."
            )

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, *_outcome: object
    ) -> None:
        resp.set_headers(_HEADERS)


class _Page:
    """The page for the flavor and the server group that are asked for."""

    def __init__(self, scheduler: Callable[[], FilterScheduler], source: str) -> None:
        self._scheduler = scheduler
        self._source = source

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        try:
            scheduler = self._scheduler()
        except errors.InvalidCloud as error:
            _problem(resp, 503, "The cloud cannot be read", str(error))
            return
        form = _form(scheduler.cloud, req)
        if form.flavor is None:
            said = f"Describe one under flavors in {self._source}."
            _problem(resp, 200, "The cloud has no flavors", said, form)
            return
        try:
            _show(resp, self._decided(scheduler, form.flavor, form))
        except errors.PolicyNotSupported as error:  # that is the answer
            _problem(resp, 200, "The policy of the group is not supported", str(error), form)
        except errors.NotFound as error:
            _problem(resp, 404, "There is no such thing in this cloud", str(error), form)
        except errors.PluginError as error:
            _problem(resp, 500, "A plugin has failed", str(error), form)

    on_head = on_get

    def _decided(self, scheduler: FilterScheduler, flavor: str, form: Form) -> str:
        request = scheduler.request(flavor, form.group)
        try:
            (decision,) = scheduler.select(request).decisions
        except NoValidHost as error:
            decision = error.decision
        return render(view_of(decision, scheduler, self._source), form)


def _form(cloud: Cloud, req: falcon.Request) -> Form:
    """What has been asked for; unless it says otherwise, the first flavor, in no group."""
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


def _tell_of_http(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError) -> None:
    _problem(resp, error.status_code, error.title or "", error.description or _NOTHING_HERE)


def _tell_nothing(
    req: falcon.Request, resp: falcon.Response, error: Exception, params: object
) -> None:
    """What nobody has foreseen."""
    # What the error says may hold anything, so it is written as Python would.
    where = "".join(traceback.format_tb(error.__traceback__))
    LOG.error(
        "%s %a: this should not have happened: %s: %a\n%s",
        req.method,
        req.path,
        type(error).__name__,
        str(error),
        where,
    )
    _problem(resp, 500, "Something has gone wrong inside", "The log of the server says more.")
