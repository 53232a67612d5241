"""Errors of steelyard in real environments that lack packages of its extras."""

import pathlib
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable

import pytest
import readme

pytestmark = pytest.mark.package

DECLARED = tomllib.loads((readme.ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
CONFIGURED = """
[steelyard_tags]
connection = sqlite:///tags.db
transport_url = amqp://mq.example.org/
"""


def names(requirements: list[str]) -> set[str]:
    """Return the names of the requirements as the index has them."""
    return {re.split("[^a-z0-9-]", each.lower())[0] for each in requirements}


@pytest.fixture(scope="module")
def bare(installed: Callable[..., pathlib.Path]) -> pathlib.Path:
    """Return the commands of an environment with the wheel, and with no package of an extra."""
    commands = installed()
    # oslo.config brings these two, and works without them.
    subprocess.run([commands / "pip", "uninstall", "--yes", "PyYAML", "urllib3"], check=True)
    return commands


@pytest.fixture(scope="module")
def partial(installed: Callable[..., pathlib.Path]) -> pathlib.Path:
    """Return the commands of an environment with the operator commands, without pages."""
    commands = installed("[cli,sql]")
    removed = ["Jinja2", "falcon", "waitress"]
    subprocess.run([commands / "pip", "uninstall", "--yes", *removed], check=True)
    return commands


@pytest.mark.parametrize(
    ("code", "feature", "module", "extra"),
    [
        ("scheduler import Cloud; Cloud.load('a.yaml')", "a cloud file in YAML", "yaml", "cli"),
        ("desk.page import render", "the decision page", "jinja2", "cli"),
        ("consumers import ConsumerStore", "the consumer store", "sqlalchemy", "sql"),
        (
            "consumers import PlacementConsumers",
            "the client for consumers in Placement",
            "jsonschema",
            "placement",
        ),
        ("tags import TagService", "the tag service", "sqlalchemy", "sql"),
        ("tags import TagStore", "the tag store", "sqlalchemy", "sql"),
        (
            "tags import TagsClient; TagsClient('http://h', 'p', 'u')",
            "a request to the service of tags",
            "keystoneauth1",
            "api",
        ),
        (
            "tags import TagsClient; TagsClient(object())",
            "a request to the service of tags",
            "keystoneauth1",
            "api",
        ),
        (
            "placement import Placement; Placement(object())",
            "a request to a Placement",
            "keystoneauth1",
            "placement",
        ),
        ("traits import sql", "a trait query in SQL", "sqlalchemy", "sql"),
        (
            "traits import TraitQuery; TraitQuery.parse('A').require_known()",
            "the list of standard traits",
            "os_traits",
            "traits",
        ),
        (
            "tags.backends import rapi; rapi.connections(None, None, 1, 1)",
            "the backend 'ganeti'",
            "urllib3",
            "ganeti",
        ),
    ],
)
def test_library_without_the_extra_names_the_feature_and_the_command(
    bare: pathlib.Path, tmp_path: pathlib.Path, code: str, feature: str, module: str, extra: str
) -> None:
    (tmp_path / "a.yaml").write_text("hosts: {}\n")
    done = subprocess.run(
        [bare / "python", "-c", f"from steelyard.{code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    error = done.stderr.splitlines()[-1]
    said, _, command = error.partition("; run ")
    assert said == (
        f"steelyard.errors.MissingExtra: {feature} needs {module!r}: "
        f"the extra {extra!r} is not installed"
    )
    (
        python,
        *pip,
    ) = shlex.split(command)
    assert python == str(bare / "python")
    assert pip[:3] == ["-m", "pip", "install"]
    assert names(pip[3:]) == names(DECLARED[extra])
    assert all(">=" in each for each in pip[3:])


def test_command_without_its_extra_names_all_its_packages(bare: pathlib.Path) -> None:
    done = subprocess.run(
        [bare / "steelyard", "plugins"], capture_output=True, text=True, check=False
    )
    said, _, command = done.stderr.partition("; run ")
    assert done.returncode == 2
    assert said == "steelyard: the steelyard command needs 'tqdm': the extra 'cli' is not installed"
    assert names(shlex.split(command)[4:]) == names(DECLARED["cli"])


@pytest.mark.parametrize(
    ("argv", "feature", "module", "extra"),
    [
        (["serve", "--example"], "the decision page", "waitress", "cli"),
        (["explain", "--example", "--html", "-"], "the decision page", "jinja2", "cli"),
        (
            ["cloud", "import", "--os-cloud", "here"],
            "a connection to a live cloud",
            "openstack",
            "placement",
        ),
        (
            ["tags", "list", "s", "--endpoint", "http://h", "--project", "p", "--user", "u"],
            "a request to the service of tags",
            "keystoneauth1",
            "api",
        ),
        (
            ["tags", "serve", "--url", "sqlite:///tags.db"],
            "the HTTP API of instance tags",
            "waitress",
            "api",
        ),
        (["--config-file", "a.conf", "tags", "watch"], "the message broker", "kombu", "amqp"),
        (["--config-file", "a.conf", "tags", "dispatch"], "the message broker", "kombu", "amqp"),
    ],
)
def test_command_without_another_extra_names_the_feature_and_the_packages(
    partial: pathlib.Path,
    tmp_path: pathlib.Path,
    argv: list[str],
    feature: str,
    module: str,
    extra: str,
) -> None:
    (tmp_path / "a.conf").write_text(CONFIGURED)
    upgrade = ["db", "upgrade", "--schema", "tags", "--url", "sqlite:///tags.db"]
    subprocess.run([partial / "steelyard", *upgrade], cwd=tmp_path, check=True)
    done = subprocess.run(
        [partial / "steelyard", *argv],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said, _, command = done.stderr.partition("; run ")
    assert said == f"steelyard: {feature} needs {module!r}: the extra {extra!r} is not installed"
    assert done.returncode == 2
    # sql has brought jsonschema, and the operator commands the rest.
    there = {"cliff", "jsonschema", "pyyaml", "tqdm"}
    assert names(shlex.split(command)[4:]) == names(DECLARED[extra]) - there


@pytest.mark.parametrize(
    ("url", "driver", "steps"),
    [
        ("postgresql+psycopg://h/db", "psycopg", ["psycopg"]),
        ("mysql+pymysql://h/db", "pymysql", ["pymysql"]),
        ("mysql://h/db", "MySQLdb", ["pymysql"]),
    ],
)
def test_store_without_its_driver_names_the_command(
    partial: pathlib.Path, url: str, driver: str, steps: list[str]
) -> None:
    code = f"from steelyard.consumers import ConsumerStore; ConsumerStore({url!r})"
    done = subprocess.run(
        [partial / "python", "-c", code], capture_output=True, text=True, check=False
    )
    error = done.stderr.splitlines()[-1]
    scheme = url.partition(":")[0]
    assert f"a database at {scheme}:// needs {driver!r}: the driver is not installed; " in error
    assert ("write mysql+pymysql:// and run " in error) == (scheme == "mysql")
    _, _, command = error.partition("run ")
    assert names(shlex.split(command)[4:]) == set(steps)
