"""Errors of steelyard in real environments that lack packages of its extras."""

import pathlib
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable

import pytest

from support.repository import ROOT

pytestmark = pytest.mark.package

DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
CONFIGURED = """
[steelyard_tags]
connection = {url}
transport_url = amqp://mq.example.org/
"""


def names(requirements: list[str]) -> set[str]:
    """Return the names of the requirements as the index has them."""
    found = {re.split("[^a-z0-9._-]", each.lower())[0] for each in requirements}
    return {re.sub("[._-]+", "-", each) for each in found}


@pytest.fixture(scope="module")
def bare(installed: Callable[..., pathlib.Path]) -> pathlib.Path:
    """Return the commands of an environment with the wheel, and with no package of an extra."""
    # oslo.config depends on these two, but works without them.
    return installed("", "PyYAML", "urllib3")


@pytest.fixture(scope="module")
def partial(installed: Callable[..., pathlib.Path]) -> pathlib.Path:
    """Return the commands of an environment with the operator commands, without pages."""
    return installed("[cli,sql]", "Jinja2", "falcon", "waitress")


@pytest.fixture(scope="module")
def tags_database(partial: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of a database with the tables of tags."""
    url = f"sqlite:///{tmp_path_factory.mktemp('database')}/tags.db"
    upgrade = ["db", "upgrade", "--schema", "tags", "--url", url]
    subprocess.run([partial / "steelyard", *upgrade], check=True)
    return url


def test_wheel_without_extras_imports(bare: pathlib.Path) -> None:
    subprocess.run([bare / "python", "-c", "from steelyard.cloud import Cloud"], check=True)


@pytest.mark.parametrize(
    ("code", "feature", "module", "extra"),
    [
        ("cloud import Cloud; Cloud.load('a.yaml')", "a cloud file in YAML", "yaml", "cli"),
        ("page import render", "the decision page", "jinja2", "cli"),
        ("consumers import ConsumerStore", "the consumer store", "sqlalchemy", "sql"),
        (
            "consumers import PlacementConsumers",
            "the client for consumers in Placement",
            "jsonschema",
            "placement",
        ),
        ("tags import TagService", "the tag service", "sqlalchemy", "sql"),
        ("tags import TagStore", "the tag store", "sqlalchemy", "sql"),
        ("tags import TagsClient", "the tags client", "keystoneauth1", "api"),
        (
            "clients import Placement; Placement(object())",
            "a request to Placement",
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
def test_library_without_an_extra_names_the_feature_and_the_command(
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
    message, _, command = error.partition("; run ")
    assert message == (
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
    message, _, command = done.stderr.partition("; run ")
    assert done.returncode == 2
    assert (
        message
        == "steelyard: the steelyard command needs 'cliff': the extra 'cli' is not installed"
    )
    assert names(shlex.split(command)[4:]) == names(DECLARED["cli"])


@pytest.mark.parametrize(
    ("argv", "feature", "module", "extra"),
    [
        (["serve", "--example"], "the decision page", "falcon", "cli"),
        (["explain", "--example", "--html", "-"], "the decision page", "jinja2", "cli"),
        (
            ["cloud", "import", "--os-cloud", "here"],
            "a connection to a live cloud",
            "openstack",
            "placement",
        ),
        (
            ["tags", "list", "s", "--endpoint", "http://h", "--project", "p", "--user", "u"],
            "the tags client",
            "keystoneauth1",
            "api",
        ),
        (
            ["tags", "serve", "--url", "{url}"],
            "the HTTP API of instance tags",
            "falcon",
            "api",
        ),
        (
            ["consumer", "serve", "--url", "sqlite:///consumers.db"],
            "the HTTP API of consumers",
            "falcon",
            "api",
        ),
        (["--config-file", "a.conf", "tags", "watch"], "the message broker", "kombu", "amqp"),
        (["--config-file", "a.conf", "tags", "dispatch"], "the message broker", "kombu", "amqp"),
        (
            ["--config-file", "a.conf", "tags", "dead-letters", "list"],
            "the message broker",
            "kombu",
            "amqp",
        ),
    ],
)
def test_command_without_another_extra_names_the_feature_and_the_packages(
    partial: pathlib.Path,
    tags_database: str,
    tmp_path: pathlib.Path,
    argv: list[str],
    feature: str,
    module: str,
    extra: str,
) -> None:
    (tmp_path / "a.conf").write_text(CONFIGURED.format(url=tags_database))
    done = subprocess.run(
        [partial / "steelyard", *(each.format(url=tags_database) for each in argv)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    message, _, command = done.stderr.partition("; run ")
    assert message == f"steelyard: {feature} needs {module!r}: the extra {extra!r} is not installed"
    assert done.returncode == 2
    # The extra sql includes jsonschema; the operator commands include the rest.
    there = {"cliff", "jsonschema", "numpy", "pyyaml", "tqdm"}
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
    assert f"missing database driver {driver!r} for {scheme}://; " in error
    assert ("use mysql+pymysql:// and run " in error) == (scheme == "mysql")
    _, _, command = error.partition("run ")
    assert names(shlex.split(command)[4:]) == set(steps)
