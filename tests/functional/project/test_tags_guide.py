"""The examples of the pages about tags: requests and responses, and units of systemd."""

import pathlib
import re
import shlex
import shutil
import subprocess
import textwrap
from typing import Any

import pytest

from steelyard import cli
from support.project.http_examples import checked, exchanges
from support.repository import DOCS
from support.services import required
from support.tags.served_api import served, tag_service, trusting

pytestmark = pytest.mark.documentation

REFERENCE = DOCS / "reference" / "tags-http-api.rst"
OPERATION = DOCS / "guides" / "operate-tags.rst"
SERVING = DOCS / "guides" / "serve-tags.rst"
PROGRAMS = "/opt/steelyard/.venv/bin/"
_UNIT = re.compile(r"``/etc/systemd/system/(\S+)``:\n\n\.\. code-block:: text\n((?:\n|   .*\n)+)")
UNITS = {
    name: textwrap.dedent(text).strip() + "\n"
    for name, text in _UNIT.findall(OPERATION.read_text())
}


def sorted_tags(body: Any) -> Any:
    """Return the body with its tags sorted, because their order is not specified."""
    if isinstance(body, dict):
        return {
            key: sorted(value) if key == "tags" else sorted_tags(value)
            for key, value in body.items()
        }
    return body


def test_api_responds_as_documented(tmp_path: Any) -> None:
    service = tag_service(tmp_path)
    documented = list(exchanges(REFERENCE))
    assert len(documented) >= 5
    with served(trusting(service)) as url:
        for request, response in documented:
            body = checked(url, request, response)
            assert sorted_tags(body) == sorted_tags(response.body), request.first
            service.jobs.poll()


def started(name: str) -> list[str]:
    """Return the program and the arguments that the unit starts."""
    (line,) = re.findall(r"^ExecStart=(.*)$", UNITS[name], re.MULTILINE)
    program, *arguments = shlex.split(line)
    assert program.startswith(PROGRAMS)
    return [program.removeprefix(PROGRAMS), *arguments]


def test_guide_has_a_unit_for_each_process() -> None:
    assert list(UNITS) == [
        "steelyard-tags-api.service",
        "steelyard-tags-watch.service",
        "steelyard-tags-dispatch@.service",
        "steelyard-tags-reconcile.service",
        "steelyard-tags-reconcile.timer",
    ]


@pytest.mark.parametrize("name", ["watch", "dispatch@", "reconcile"])
def test_unit_starts_an_existing_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    program, option, file, *words = started(f"steelyard-tags-{name}.service")
    assert (program, option, file) == (
        "steelyard",
        "--config-file",
        "/etc/steelyard/steelyard.conf",
    )
    assert cli.main([*words, "--help"]) == 0
    assert f" {' '.join(words[1:])} [-h]" in capsys.readouterr().out.splitlines()[0]


def test_unit_of_the_api_starts_the_command_of_the_guide() -> None:
    (line,) = re.findall(r"^   (gunicorn .+)$", SERVING.read_text(), re.MULTILINE)
    assert started("steelyard-tags-api.service") == line.split()
    (stop,) = re.findall(
        r"^TimeoutStopSec=(\d+)$", UNITS["steelyard-tags-api.service"], re.MULTILINE
    )
    assert int(stop) > int(line.split()[line.split().index("--graceful-timeout") + 1])


def test_units_are_valid(tmp_path: pathlib.Path) -> None:
    if shutil.which("systemd-analyze") is None:
        required.missing("no systemd-analyze: install systemd")
    for name, text in UNITS.items():
        # The check requires programs that exist.
        (tmp_path / name).write_text(re.sub(rf"{PROGRAMS}\w+", "/bin/true", text))
    command = ["systemd-analyze", "verify", "--man=no", *sorted(map(str, tmp_path.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
