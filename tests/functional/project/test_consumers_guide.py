"""The examples of the pages about the HTTP API of consumers: requests, responses and commands."""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import textwrap
from typing import Any

import pytest

from support.cli.served_command import COMMAND
from support.project.http_examples import checked, exchanges
from support.repository import DOCS
from support.services.required import missing
from support.web.api_process import Served, running

pytestmark = pytest.mark.documentation

REFERENCE = DOCS / "reference" / "consumers-http-api.rst"
GUIDE = DOCS / "guides" / "serve-consumers.rst"


@pytest.fixture
def database(tmp_path: pathlib.Path) -> str:
    url = f"sqlite:///{tmp_path}/consumers.db"
    subprocess.run([*COMMAND, "db", "upgrade", "--url", url], check=True, capture_output=True)
    return url


def serving(database: str) -> contextlib.AbstractContextManager[Served]:
    argv = [*COMMAND, "consumer", "serve", "--url", database, "--port", "0"]
    return running(argv, "Ctrl-C", {})


def without_ids(body: Any) -> Any:
    """Return the body without the ids of requests, which are different each time."""
    if isinstance(body, dict) and "errors" in body:
        for error in body["errors"]:
            error.pop("request_id")
    return body


def test_api_responds_as_documented(database: str) -> None:
    documented = list(exchanges(REFERENCE))
    assert len(documented) >= 7
    with serving(database) as served:
        for request, response in documented:
            body = checked(f"http://127.0.0.1:{served.port}", request, response)
            assert without_ids(body) == response.body, request.first


def test_first_requests_of_the_guide_are_answered_as_shown(database: str) -> None:
    if shutil.which("curl") is None:
        missing("no curl")
    blocks = re.findall(
        r"^\.\. code-block:: (bash|json)\n((?:\n| +.*\n)+)", GUIDE.read_text(), re.MULTILINE
    )
    (commands,) = (text for kind, text in blocks if kind == "bash" and "curl" in text)
    answer = next(text for kind, text in blocks if kind == "json")
    with serving(database) as served:
        local = textwrap.dedent(commands).replace("127.0.0.1:8778", f"127.0.0.1:{served.port}")
        said = subprocess.check_output(
            ["bash", "-e", "-c", local], text=True, stderr=subprocess.DEVNULL
        )
    assert json.loads(said) == json.loads(answer)
