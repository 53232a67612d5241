"""The arrows of the design: what may import what."""

import ast
import pathlib

import pytest

import steelyard

ROOT = pathlib.Path(steelyard.__file__).parent
# From the bottom to the top; a module imports from its own layer and from those below.
LAYERS = [
    [
        "attributes",
        "conf",
        "database_errors",
        "engines",
        "errors",
        "expressions",
        "extras",
        "loops",
        "microversions",
        "once",
        "schema_changes",
        "sessions",
        "severity",
        "stores",
        "string_sets",
        "verdict",
        "whole_files",
    ],
    ["placement"],
    ["aggregates", "failure_domains", "groups", "traits"],
    ["filters", "weighers"],
    ["consumers"],
    ["plugins", "scheduler", "tags"],
    ["desk", "doctor"],
    ["cli", "nova"],
]
ROOMS = {room for layer in LAYERS for room in layer}
# The only rooms that may import more than the runtime dependencies, and what.
EXTRAS = {
    "traits.query": {"os_traits"},
    "traits.sql": {"sqlalchemy"},
    "consumers.bodies": {"jsonschema"},
    "consumers.migrations": {"alembic", "sqlalchemy"},
    "consumers.model": {"sqlalchemy"},
    "consumers.store": {"sqlalchemy"},
    "cli": {"cliff", "keystoneauth1", "openstack", "tqdm", "waitress", "yaml"},
    "desk.page.rendering": {"jinja2"},
    "desk.serving": {"falcon"},
    "nova": {"nova"},
    "scheduler.cloud_file": {"yaml"},
    "sessions": {"keystoneauth1"},
    "database_errors": {"sqlalchemy"},
    "engines": {"sqlalchemy"},
    "schema_changes": {"alembic", "sqlalchemy"},
    "stores": {"alembic", "sqlalchemy"},
    "tags.api": {"falcon"},
    "tags.backends.rapi": {"urllib3"},
    "tags.broker": {"kombu"},
    "tags.client": {"keystoneauth1", "urllib3"},
    "tags.configured": {"sqlalchemy"},
    "tags.dispatcher": {"kombu"},
    "tags.migrations": {"alembic", "sqlalchemy"},
    "tags.model": {"sqlalchemy"},
    "tags.schemas": {"jsonschema"},
    "tags.ownership": {"sqlalchemy"},
    "tags.store": {"sqlalchemy"},
}
RUNTIME = {"oslo_config", "oslo_log", "stevedore", "steelyard"}


def modules() -> dict[str, ast.Module]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__")
        found[name.strip(".")] = ast.parse(path.read_text())
    return found


def imported(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert node.module
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def layer(module: str) -> int:
    room = module.split(".", maxsplit=1)[0]
    return next(number for number, rooms in enumerate(LAYERS) if room in rooms)


MODULES = modules()


@pytest.mark.parametrize("name", [name for name in MODULES if name])
def test_arrows_point_down(name: str) -> None:
    own = layer(name)
    for target in imported(MODULES[name]):
        room = target.removeprefix("steelyard.")
        if target.startswith("steelyard.") and room.split(".")[0] in ROOMS:
            assert layer(room) <= own, f"{name} imports {target}"


@pytest.mark.parametrize("name", MODULES)
def test_only_the_edges_import_extras(name: str) -> None:
    import sys

    top = {target.split(".")[0] for target in imported(MODULES[name])}
    allowed = {
        extra for room, extras in EXTRAS.items() if name.startswith(room) for extra in extras
    }
    assert top - RUNTIME - set(sys.stdlib_module_names) <= allowed


def test_every_room_is_in_a_layer() -> None:
    rooms = {name.split(".")[0] for name in MODULES if name}
    assert rooms == ROOMS
