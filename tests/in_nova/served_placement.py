"""Commands in processes of their own, which ask the Placement of this process over HTTP."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import threading
import wsgiref.simple_server
from collections.abc import Callable, Iterator
from typing import Any

from oslo_config import cfg
from placement import conf as placement_conf
from placement import deploy

MAIN = "import sys; from steelyard import cli; sys.exit(cli.main())"


class Steelyard:
    """Runs a command to its end; a cloud of the name "here" has the Placement.

    ``before`` is what is called with the process and each request, until that is answered.
    """

    before: Callable[[Any, str, str], Any] | None = None

    def __init__(self, app: Any, directory: pathlib.Path) -> None:
        self._app = app
        self._clouds = directory / "clouds.yaml"
        self.url = ""

    def __call__(self, *argv: str, token: str = "admin", stdin: str = "") -> tuple[int, str, str]:
        auth = {"auth_type": "admin_token", "auth": {"endpoint": self.url, "token": token}}
        here = {**auth, "placement_endpoint_override": self.url}
        self._clouds.write_text(json.dumps({"clouds": {"here": here}}))
        with subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", MAIN, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OS_CLIENT_CONFIG_FILE": str(self._clouds)},
        ) as self.process:
            out, err = self.process.communicate(stdin, timeout=100)
        return self.process.returncode, out, err

    def answer(self, environ: Any, start: Any) -> Any:
        # Whole, before the process may be ended.
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"] or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        if self.before is not None:
            self.before(self.process, environ["REQUEST_METHOD"], environ["PATH_INFO"])
        return self._app(environ, start)


class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (its name)
        pass


@contextlib.contextmanager
def commands_on(directory: pathlib.Path) -> Iterator[Steelyard]:
    """Commands on the Placement that is open here."""
    conf = cfg.ConfigOpts()
    placement_conf.register_opts(conf)
    conf.set_override("auth_strategy", "noauth2", group="api")
    conf([], default_config_files=[], default_config_dirs=[])
    steelyard = Steelyard(deploy.loadapp(conf), directory)
    server = wsgiref.simple_server.make_server(
        "127.0.0.1", 0, steelyard.answer, handler_class=Quiet
    )
    steelyard.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield steelyard
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
