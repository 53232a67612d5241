"""The environments that ``tox -e release`` runs, and its time limit."""

import configparser
import re
import shlex
import subprocess
import sys
import tomllib

import pytest

from support.repository import ROOT

TOX = configparser.ConfigParser(interpolation=None)
TOX.read_string((ROOT / "tox.ini").read_text())
COMMAND = shlex.split(TOX["testenv:release"]["commands"])
ENVIRONMENTS = COMMAND[-1].split(",")
OLDER_NOVAS = dict(re.findall(r"(nova\d+): nova==(\S+)", TOX["testenv:nova{29,31}"]["deps"]))


def test_release_runs_every_environment_of_an_older_nova() -> None:
    assert OLDER_NOVAS
    assert OLDER_NOVAS.keys() <= set(ENVIRONMENTS)


def test_nova_guide_names_release_for_every_older_nova() -> None:
    guide = (ROOT / "docs" / "guides" / "install-into-nova.rst").read_text()
    rows = re.findall(r"\* - (\S+)\n +- \S+\n +- before a release, by ``tox -e release``", guide)
    assert sorted(rows) == sorted(OLDER_NOVAS.values())


def test_release_runs_every_supported_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = re.findall(r"Python :: 3\.(\d+)", "\n".join(project["classifiers"]))
    assert versions
    assert {f"py3{version}" for version in versions} <= set(ENVIRONMENTS)


def test_release_is_not_run_by_default() -> None:
    default = TOX["tox"]["env_list"].replace(" ", "").split(",")
    assert "nova" in default
    assert "release" not in default


@pytest.mark.parametrize(("at_sigterm", "status"), [("SIG_DFL", 124), ("SIG_IGN", -9)])
def test_release_after_its_time_limit_kills_every_process(at_sigterm: str, status: int) -> None:
    limit = COMMAND[: COMMAND.index("python")]
    shortened = [re.sub(r"\b\d+[smh]$", "1s", word) for word in limit]
    assert shortened != limit
    sleeper = "import time; time.sleep(600)"
    script = (
        "import signal, subprocess, sys\n"
        f"signal.signal(signal.SIGTERM, signal.{at_sigterm})\n"
        f"subprocess.run([sys.executable, '-c', {sleeper!r}])\n"
    )
    # This returns when all processes that share the output have exited.
    done = subprocess.run(
        [*shortened, sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == status
    assert "sending signal TERM" in done.stderr
