"""The distributions: their content, their installation into empty environments, their commands."""

import os
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable

import pytest

from support.project import readme

pytestmark = pytest.mark.package

DEBIANS = pathlib.Path("/usr/bin/python3")
CAN_CREATE = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"


def test_wheel_contains_the_package_and_its_data_alone(wheel: pathlib.Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "steelyard/py.typed" in names
    assert "steelyard/cloud/example.yaml" in names
    page = "steelyard/page"
    assert {
        f"{page}/page.css",
        f"{page}/scripts/page.js",
        f"{page}/templates/decision.html",
    } <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"steelyard"}


def test_source_distribution_contains_tests_documentation_and_tools(built: pathlib.Path) -> None:
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ["LICENSE", "README.rst", "tox.ini", "src/steelyard/py.typed", "docs/index.rst"]
    wanted += [".ci/run", ".pre-commit-config.yaml"]
    assert [name for name in wanted if name not in names] == []
    assert any(name.startswith("tests/unit/") for name in names)


def test_wheel_with_its_command_schedules_and_writes_the_page(
    installed: Callable[..., pathlib.Path], tmp_path: pathlib.Path
) -> None:
    command = installed("[cli]") / "steelyard"
    done = subprocess.run(
        [command, "schedule", "--example", "-f", "value", "-c", "Host"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["rack2-node2", "rack3-node1"]
    file = tmp_path / "page.html"
    subprocess.run([command, "explain", "--example", "--html", str(file)], check=True)
    assert file.read_text("utf-8").startswith("<!doctype html>")


class Shell:
    """A shell in a fresh copy of the source, with Debian's Python if it is usable."""

    def __init__(self, source: pathlib.Path) -> None:
        usable = DEBIANS.exists() and not subprocess.call([DEBIANS, "-c", CAN_CREATE])
        python = DEBIANS.parent if usable else pathlib.Path(sys.executable).parent
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "TOX", "VIRTUAL_ENV"))
        }
        # Most modules are never imported and need no bytecode.
        self._env = {**kept, "PATH": f"{python}:/usr/bin:/bin", "PIP_NO_COMPILE": "1"}
        self._source = source

    def type(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run the command, and return its exit status and output."""
        return subprocess.run(
            command,
            shell=True,
            cwd=self._source,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def shell(built: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Unpack the source distribution, and return a shell there."""
    target = tmp_path_factory.mktemp("source")
    (archive,) = built.glob("*.tar.gz")
    subprocess.run(["tar", "-xzf", archive, "-C", target], check=True)
    (source,) = target.iterdir()
    return Shell(source)


def test_readme_commands_run_one_after_the_other(shell: Shell) -> None:
    """Check the next steps too: repair the environment, and build distributions next to it."""
    # Without Debian's package python3-venv, a first attempt leaves an environment without pip.
    assert shell.type("python3 -m venv --without-pip .venv").returncode == 0
    for _ in range(2):
        done = shell.type(readme.INSTALL)
        assert done.returncode == 0, done.stderr
        assert re.findall("rack[0-9]-node[0-9]", done.stdout) == ["rack2-node2", "rack3-node1"]
    # The whole test command would run this test again: tox only lists its environments.
    done = shell.type(f"{readme.TEST} list")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^lint +-> ", done.stdout, re.MULTILINE)
    check_message_names_a_command_that_installs_missing_packages(shell)
    check_distributions_leave_the_environment_out(shell)


def check_message_names_a_command_that_installs_missing_packages(shell: Shell) -> None:
    assert shell.type(".venv/bin/pip uninstall --yes jinja2 tqdm waitress").returncode == 0
    schedule = ".venv/bin/steelyard schedule --example"
    done = shell.type(schedule)
    assert done.returncode == 2
    message, _, command = done.stderr.strip().partition("; run ")
    assert message == (
        "steelyard: the steelyard command needs 'tqdm': the extra 'cli' is not installed"
    )
    assert re.fullmatch(
        r"/\S+/\.venv/bin/python3? -m pip install jinja2>=\S+ tqdm>=\S+ waitress>=\S+",
        command.replace("'", ""),
    )
    assert shell.type(command).returncode == 0
    assert shell.type(schedule).returncode == 0
    page = ".venv/bin/steelyard explain --example --html page.html && head -c 15 page.html"
    assert shell.type(page).stdout.endswith("<!doctype html>")


def check_distributions_leave_the_environment_out(shell: Shell) -> None:
    build = f"{sys.executable} -m build --outdir {{}} . && tar tzf {{}}/*.tar.gz"
    done = shell.type(build.format("made", "made"))
    assert done.returncode == 0, done.stderr
    names = done.stdout.splitlines()
    assert any(name.endswith("/src/steelyard/extras.py") for name in names)
    assert [name for name in names if "/.venv/" in name] == []
