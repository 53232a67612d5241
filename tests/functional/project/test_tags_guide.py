"""The examples of the pages about tags: requests and responses, and units of systemd."""

import pathlib
import re
import shutil
import subprocess
from typing import Any

import pytest

from steelyard import cli
from support.project.http_examples import checked, exchanges
from support.repository import DOCS
from support.services import required
from support.tags import units
from support.tags.served_api import served, tag_service, trusting

pytestmark = pytest.mark.documentation

REFERENCE = DOCS / "reference" / "tags-http-api.rst"
OPERATION = DOCS / "guides" / "operate-tags.rst"
POLICY = DOCS / "guides" / "set-the-policy-of-tags.rst"
SERVING = DOCS / "guides" / "serve-tags.rst"


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


def test_guide_shows_all_units() -> None:
    shown = re.findall(
        r"literalinclude:: /examples/systemd/(\S+)$", OPERATION.read_text(), re.MULTILINE
    )
    assert sorted(shown) == list(units.UNITS)
    assert len(shown) == 6


@pytest.mark.parametrize("name", ["watch", "dispatch@", "reconcile"])
def test_unit_starts_an_existing_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    unit = f"steelyard-tags-{name}.service"
    program, option, file, *words = units.command(unit, units.environment(unit), "1")
    assert (program, option, file) == ("steelyard", "--config-file", units.CONFIGURATION)
    assert cli.main([*words, "--help"]) == 0
    assert f" tags {name.rstrip('@')} [-h]" in capsys.readouterr().out.splitlines()[0]


def test_unit_of_the_api_starts_the_command_of_the_guide() -> None:
    unit = "steelyard-tags-api.service"
    (line,) = re.findall(r"^   (gunicorn .+)$", SERVING.read_text(), re.MULTILINE)
    assert units.command(unit, units.environment(unit)) == line.split()
    graceful = line.split()[line.split().index("--graceful-timeout") + 1]
    assert int(units.setting(unit, "TimeoutStopSec")) > int(graceful)


def test_unit_of_the_api_shares_metrics_in_its_own_folder() -> None:
    unit = "steelyard-tags-api.service"
    folder = units.setting(unit, "RuntimeDirectory")
    assert units.environment(unit)["PROMETHEUS_MULTIPROC_DIR"] == f"/run/{folder}"


def test_units_are_valid(tmp_path: pathlib.Path) -> None:
    if shutil.which("systemd-analyze") is None:
        required.missing("no systemd-analyze: install systemd")
    for name, text in units.UNITS.items():
        if name != units.ENVIRONMENT:
            # The check requires programs that exist.
            (tmp_path / name).write_text(re.sub(rf"{units.PROGRAMS}\w+", "/bin/true", text))
    command = ["systemd-analyze", "verify", "--man=no", *sorted(map(str, tmp_path.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
