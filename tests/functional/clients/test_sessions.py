"""The choice of endpoint in a cloud with several regions and interfaces."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steelyard import cli
from support.clients import canned_services
from support.clients.canned_services import Server
from support.repository import DOCS

# openstacksdk warns about a missing InfluxDB and about unknown service types.
pytestmark = pytest.mark.filterwarnings("ignore:.*(InfluxDB|service_type)")

ENDPOINTS = [(region, face) for region in ("east", "west") for face in ("public", "internal")]
CONSUMER = "00000000-0000-4000-8000-000000000001"

Servers = dict[tuple[str, str], Server]


def answers() -> canned_services.Answers:
    """Return the answers of every endpoint, as Placement, Nova and tag service in one."""
    version = {"id": "v1.0", "max_version": "1.39", "min_version": "1.0", "status": "CURRENT"}
    version["links"] = [{"rel": "self", "href": ""}]  # type: ignore[assignment]
    found: dict[str, Any] = {
        "/": {"versions": [version]},
        "/resource_providers": {"resource_providers": []},
        "/usages": {"usages": {}},
        "/servers/s/tags": {"tags": ["web"], "statuses": {"web": "ACTIVE"}},
        f"/allocations/{CONSUMER}": {},
    }
    return {path: (200, json.dumps(body).encode()) for path, body in found.items()}


@pytest.fixture
def servers(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    """Yield a server for each region and interface, with a Keystone and a clouds.yaml."""
    with contextlib.ExitStack() as opened:
        made = {
            each: opened.enter_context(canned_services.answering(answers())) for each in ENDPOINTS
        }
        urls = {each: server.url for each, server in made.items()}
        services = ("placement", "compute", "instance-tags")
        keystone = opened.enter_context(
            canned_services.answering(canned_services.keystone(urls, *services))
        )
        cloud = {
            "auth_type": "v3password",
            "auth": {
                "auth_url": f"{keystone.url}/v3",
                "username": "u",
                "password": "p",
                "project_name": "p",
                "user_domain_id": "d",
                "project_domain_id": "d",
            },
        }
        clouds = {
            f"{region}-{face}": cloud | {"region_name": region, "interface": face}
            for region, face in ENDPOINTS
        }
        clouds["mycloud"] = clouds["west-internal"]
        path = tmp_path / "clouds.yaml"
        path.write_text(json.dumps({"clouds": clouds}))
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
        yield made


def asked(servers: Servers) -> set[tuple[str, str]]:
    """Return the region and the interface of the endpoints that received requests."""
    return {each for each, server in servers.items() if server.asked}


def recipes() -> Iterator[Any]:
    """Yield the Python examples of the documentation that connect to a cloud."""
    for page in sorted(DOCS.rglob("*.rst")):
        for block in re.findall(
            r"^\.\. code-block:: python\n((?:\n| +.*\n)+)", page.read_text(), re.MULTILINE
        ):
            if "openstack.connect(" in block:
                yield pytest.param(textwrap.dedent(block), id=page.stem)


USES: dict[str, Callable[[Any], object]] = {
    "placement": lambda placement: placement.send("GET", "/resource_providers", "1.0"),
    "consumers": lambda consumers: consumers.put_allocations(
        CONSUMER,
        {
            "allocations": {CONSUMER: {"resources": {"VCPU": 1}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        },
    ),
    "tags": lambda tags: tags.list("s"),
}


@pytest.mark.parametrize("recipe", list(recipes()))
def test_guide_recipe_uses_region_of_cloud(
    servers: Servers, recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["recipe.py", "mycloud"])
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(recipe, names)
    used = [use(names[name]) for name, use in USES.items() if name in names]
    assert used
    assert asked(servers) == {("west", "internal")}


def test_tags_recipe_uses_endpoint_override(servers: Servers, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "clouds.yaml"
    clouds = json.loads(path.read_text())
    override = {"instance_tags_endpoint_override": servers["east", "public"].url}
    clouds["clouds"]["mycloud"].update(override)
    path.write_text(json.dumps(clouds))
    (recipe,) = (each.values[0] for each in recipes() if each.id == "use-tags-from-python")
    names: dict[str, Any] = {}
    exec(recipe, names)
    assert names["tags"].list("s")["tags"] == ["web"]
    assert asked(servers) == {("east", "public")}


def test_every_guide_with_recipe_is_tested() -> None:
    assert {recipe.id for recipe in recipes()} == {
        "count-consumers-in-placement",
        "query-placement",
        "query-placement-from-python",
        "use-tags-from-python",
    }


@pytest.mark.parametrize(("region", "face"), ENDPOINTS)
@pytest.mark.parametrize(
    "argv",
    [
        ["query", "--providers", "--required", "CUSTOM_A"],
        ["usage", "--project", "p"],
        ["consumer", "backfill", "--type", "INSTANCE", "--project", "p"],
        ["tags", "list", "s"],
        ["cloud", "import", "--output", "-"],
    ],
    ids=lambda argv: argv[0],
)
def test_command_uses_region_and_interface_of_cloud(
    servers: Servers, argv: list[str], region: str, face: str, capsys: Any
) -> None:
    cli.main([*argv, "--os-cloud", f"{region}-{face}"])
    assert asked(servers) == {(region, face)}, capsys.readouterr().err


def test_missing_clouds_yaml_is_reported(tmp_path: pathlib.Path) -> None:
    command = "import sys; from steelyard.cli import main; sys.exit(main())"
    argv = ["usage", "--project", "p", "--os-cloud", "x"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", command, *argv],
        cwd=tmp_path,
        env={**kept, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "steelyard: --os-cloud x: no clouds.yaml in the current directory, ~/.config/openstack or /etc/openstack; write one there, or name one in the environment variable "
        "OS_CLIENT_CONFIG_FILE\n"
    )
