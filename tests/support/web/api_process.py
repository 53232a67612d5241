"""A WSGI server in a process of its own, and persistent connections to it."""

import contextlib
import dataclasses
import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any


class Connection:
    """A persistent connection, which sends these headers and reads each answer completely."""

    def __init__(self, connection: http.client.HTTPConnection, headers: Mapping[str, str]) -> None:
        self.http = connection
        self._headers = headers

    def __call__(
        self,
        method: str,
        target: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        data = json.dumps(body) if isinstance(body, dict) else body
        kind = {} if body is None else {"Content-Type": "application/json"}
        sent = self._headers if headers is None else headers
        self.http.request(method, target, data, {**sent, **kind})
        answer = self.http.getresponse()
        said = answer.read()
        return answer.status, json.loads(said) if said else None


@dataclasses.dataclass
class Served:
    """A running server, the output of its start, and the headers of its clients."""

    process: subprocess.Popen[str]
    said: str
    connections: contextlib.ExitStack
    headers: Mapping[str, str]

    @property
    def port(self) -> int:
        return int(re.findall(r":(\d+)", self.said)[-1])

    def connect(self, host: str = "127.0.0.1") -> Connection:
        made = http.client.HTTPConnection(host, self.port, timeout=60)
        self.connections.enter_context(contextlib.closing(made))
        return Connection(made, self.headers)


@contextlib.contextmanager
def running(
    command: list[str], last: str, headers: Mapping[str, str], **environment: str
) -> Iterator[Served]:
    """Run the server, and yield it after it printed the text ``last``."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    said = ""
    with process, contextlib.ExitStack() as connections:
        connections.callback(process.kill)
        while last not in said:
            line = process.stdout.readline()
            assert line, process.communicate()
            said += line
        yield Served(process, said, connections, headers)


def under_gunicorn(
    application: str,
    headers: Mapping[str, str],
    options: Mapping[str, object],
    **environment: str,
) -> contextlib.AbstractContextManager[Served]:
    """Run gunicorn on a free port with these options; ``--bind`` is replaced."""
    given = {**options, "--bind": "127.0.0.1:0"}
    line = " ".join(f"{name} {value}" for name, value in given.items())
    command = f"exec {sys.executable} -m gunicorn {line} {application} 2>&1"
    return running(["sh", "-c", command], "Listening at", headers, **environment)
