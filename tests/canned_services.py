"""Services whose answers a test has chosen, and clouds.yaml that leads to them."""

import contextlib
import http.server
import json
import pathlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any

Answers = Mapping[str, tuple[int, bytes]]


class Server(http.server.ThreadingHTTPServer):
    """Answers each path, with a query or without any, with a status and a body."""

    answers: dict[str, tuple[int, bytes]]
    asked: list[tuple[str, str]]
    agents: set[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["OpenStack-API-Version"]))
        self.server.agents.add(self.headers["User-Agent"])
        answers = self.server.answers
        otherwise = answers.get(self.path.partition("?")[0], (404, b""))
        status, body = answers.get(self.path, otherwise)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        with contextlib.suppress(ConnectionError):  # who has asked may have gone
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (its name)
        pass


@contextlib.contextmanager
def answering(answers: Answers) -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.answers, made.asked, made.agents = dict(answers), [], set()
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def describe(directory: pathlib.Path, endpoint: str, *services: str, **more: Any) -> pathlib.Path:
    """A clouds.yaml whose cloud "here" has these services, or both, at the URL."""
    endpoints = {
        f"{service}_endpoint_override": endpoint for service in services or ("compute", "placement")
    }
    path = directory / "clouds.yaml"
    path.write_text(json.dumps({"clouds": {"here": {"auth_type": "none", **endpoints, **more}}}))
    return path
