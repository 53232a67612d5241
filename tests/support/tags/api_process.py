"""The HTTP API of instance tags in a process of its own."""

import contextlib
import time
from typing import Any

from support.web import api_process
from support.web.api_process import Connection, Served

P = {"X-Project-Id": "p", "X-User-Id": "u"}
ALL = "/servers/s/tags"


def option_file(tmp_path: Any, **values: object) -> str:
    path = tmp_path / "tags.conf"
    lines = [f"{name} = {value}" for name, value in values.items()]
    path.write_text("\n".join(["[steelyard_tags]", *lines, ""]))
    return str(path)


def running(
    command: list[str], last: str, **environment: str
) -> contextlib.AbstractContextManager[Served]:
    """Run the server for clients of the project p."""
    return api_process.running(command, last, P, **environment)


def until_active(ask: Connection) -> Any:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        statuses = ask("GET", ALL)[1]["statuses"]
        if "PENDADD" not in statuses.values():
            break
        time.sleep(0.05)
    return statuses
