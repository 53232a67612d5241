"""The drawing of docs/contributing/architecture.rst: what each package may import."""

import ast
import collections
import re
import sys
from collections.abc import Iterator

import pytest

from support.project.parsed_sources import FOUND, RUNTIME, imported, part, reads, used
from support.repository import DOCS

DRAWING = DOCS / "contributing/architecture.rst"

# Each package, with the packages that it may import.
PACKAGES = {
    "cli": "page live analysis nova scheduler cloud consumers tags web sql clients "
    "filters weighers traits",
    "page": "web analysis scheduler cloud filters",
    "live": "analysis scheduler cloud traits clients",
    "analysis": "scheduler cloud filters weighers traits",
    "nova": "scheduler cloud filters weighers",
    "scheduler": "cloud consumers filters weighers traits",
    "cloud": "traits",
    "consumers": "web sql clients",
    "tags": "web sql clients",
    "web": "",
    "sql": "",
    "clients": "traits",
    "filters": "traits",
    "weighers": "traits",
    "traits": "",
}
# Single modules. Every package may import them. They may import the modules behind them, and all
# foundations.
MODULES = {
    "plugins": "",
    "expressions": "",
    "aggregates": "expressions verdict",
    "groups": "",
    "failure_domains": "",
    "resources": "",
    "verdict": "",
    "findings": "",
}
# Everything may import these.
FOUNDATIONS = {
    "conf": "errors text _once",
    "extras": "errors",
    "microversions": "errors",
    "attributes": "",
    "errors": "text",
    "text": "",
    "_string_sets": "",
    "_once": "",
}
PARTS = PACKAGES.keys() | MODULES.keys() | FOUNDATIONS.keys()

# The modules that may import more than the runtime dependencies, and these imports.
EXTRAS = {
    "traits.query": {"os_traits"},
    "traits.sql": {"sqlalchemy"},
    "consumers.bodies": {"jsonschema"},
    "consumers.http.api": {"falcon"},
    "consumers.migrations": {"sqlalchemy"},
    "consumers.model": {"sqlalchemy"},
    "consumers.reads": {"sqlalchemy"},
    "consumers.store": {"sqlalchemy"},
    "consumers.type_rows": {"sqlalchemy"},
    "consumers.writes": {"sqlalchemy"},
    "cli": {"cliff", "tqdm"},
    "cli.inputs.os_connection": {"keystoneauth1", "openstack", "yaml"},
    "page.rendering": {"jinja2"},
    "scheduler.arithmetic": {"numpy"},
    "page.compression": {"falcon"},
    "page.serving": {"falcon"},
    "nova": {"nova"},
    "cloud.files.syntax": {"yaml"},
    "clients.sessions": {"keystoneauth1"},
    "sql": {"alembic", "sqlalchemy"},
    "tags.http.api": {"falcon"},
    "tags.backends.rapi": {"urllib3"},
    "tags.jobs.broker": {"kombu"},
    "tags.http.client": {"keystoneauth1", "urllib3"},
    "tags.http.policy": {"oslo_policy"},
    "tags.database": {"sqlalchemy"},
    "tags.jobs.dead_letters": {"kombu"},
    "tags.jobs.dispatcher": {"kombu"},
    "tags.migrations": {"sqlalchemy"},
    "tags.monitoring.metrics": {"prometheus_client"},
    "tags.monitoring.parts": {"falcon"},
    "tags.monitoring.resources": {"falcon", "prometheus_client"},
    "tags.http.schemas": {"jsonschema"},
    "web.configured": {"falcon"},
    "web.documents": {"falcon"},
    "web.error_answers": {"falcon"},
    "web.gunicorn_worker": {"gunicorn", "waitress"},
    "web.health": {"falcon"},
    "web.metrics": {"falcon", "prometheus_client"},
    "web.microversions": {"falcon"},
    "web.requests": {"falcon"},
    "web.server": {"waitress"},
}
# Names of the standard library that one module uses for all others. ``parses_uuids`` finds the
# parsing of UUIDs, which ``text.uuids`` owns.
OWNERS = {
    "difflib": "text.spelling",
    "json.JSONDecoder": "text.strict_json",
    "json.decoder": "text.strict_json",
    "json.load": "text.strict_json",
    "json.loads": "text.strict_json",
}


def parts_imported(module: str) -> set[str]:
    """Return the other parts of steelyard that the module imports."""
    ours = {
        part(name.removeprefix("steelyard."))
        for name in imported(FOUND[module])
        if name.startswith("steelyard.")
    }
    return ours - {part(module), "__version__"}


def allowed(module: str) -> set[str]:
    own = part(module)
    if own in PACKAGES:
        return {*PACKAGES[own].split(), *MODULES, *FOUNDATIONS}
    if own in MODULES:
        return {*MODULES[own].split(), *FOUNDATIONS}
    return {*FOUNDATIONS[own].split()}


def test_module_imports_only_what_the_drawing_allows() -> None:
    found = {module: parts_imported(module) - allowed(module) for module in FOUND if module}
    assert {module: parts for module, parts in found.items() if parts} == {}


def test_every_module_is_in_the_drawing() -> None:
    assert {part(module) for module in FOUND if module} == PARTS


def test_parts_have_no_cycles() -> None:
    graph: dict[str, set[str]] = {name: set() for name in PARTS}
    for module in filter(None, FOUND):
        graph[part(module)] |= parts_imported(module)
    while graph:
        free = {name for name, others in graph.items() if not others}
        assert free, f"a cycle is among {sorted(graph)}"
        graph = {name: others - free for name, others in graph.items() if name not in free}


def attributes_set(kind: ast.ClassDef) -> set[str]:
    """Return the attributes that methods other than the constructor set on the instance."""
    return {
        node.attr
        for method in kind.body
        if isinstance(method, ast.FunctionDef) and method.name != "__init__"
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) == "self"
    }


def test_commands_set_attributes_only_in_constructors() -> None:
    found = {
        f"{module}.{kind.name}": attributes_set(kind)
        for module, tree in FOUND.items()
        if part(module) == "cli"
        for kind in ast.walk(tree)
        if isinstance(kind, ast.ClassDef)
    }
    assert {name: names for name, names in found.items() if names} == {
        "cli.app.App": {"interactive_mode"},  # cliff's
        "cli.commands.Command": {"opened"},
        "cli.commands.Listing": {"formatter"},  # cliff's
        "cli.commands.Showing": {"formatter"},  # as above
        "cli.inputs.parsing.Parser": {"given"},
    }


def of_other_extras(module: str, tree: ast.Module) -> set[str]:
    """Return the packages that the module imports although its extras do not have them."""
    top = {part(name) for name in imported(tree)}
    extras = {
        extra
        for name, several in EXTRAS.items()
        if f"{module}.".startswith(f"{name}.")
        for extra in several
    }
    return top - RUNTIME - set(sys.stdlib_module_names) - extras


def test_module_imports_only_the_extras_that_it_may() -> None:
    found = {module: of_other_extras(module, tree) for module, tree in FOUND.items()}
    assert {module: names for module, names in found.items() if names} == {}


def public_types(tree: ast.Module) -> Iterator[str]:
    """Yield the names of the public classes and type aliases of the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and not is_type_variable(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            yield from (name for name in names if name[0].isupper() and not name.isupper())


def is_type_variable(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in {"TypeVar", "ParamSpec"}


def test_names_of_public_types_are_unique() -> None:
    modules_of = collections.defaultdict(list)
    for module, tree in FOUND.items():
        for name in public_types(tree):
            modules_of[name].append(module)
    assert {name: several for name, several in modules_of.items() if len(several) > 1} == {}


@pytest.mark.parametrize(
    "code",
    [
        "class Finding:\n    pass",
        "class Check:\n    class Finding:\n        pass",
        "Finding = int",
        "Finding: TypeAlias = int",
        "if sys.version_info > (3, 12):\n    Finding = int",
        "try:\n    import yaml\nexcept ImportError:\n    Finding = int",
    ],
)
def test_public_type_is_found(code: str) -> None:
    assert "Finding" in set(public_types(ast.parse(code)))


def owners(tree: ast.AST) -> set[str]:
    """Return the modules that own names which the code uses."""
    names = used(tree)
    found = {owner for idea, owner in OWNERS.items() for name in names if is_within(name, idea)}
    return found | ({"text.uuids"} if parses_uuids(tree) else set())


def is_within(name: str, idea: str) -> bool:
    return f"{name}.".startswith(f"{idea}.")


def parses_uuids(tree: ast.AST) -> bool:
    """Return whether the code uses ``uuid.UUID`` other than with a constant or a number."""
    harmless = {
        node.func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and all(isinstance(argument, ast.Constant) for argument in node.args)
        and {keyword.arg for keyword in node.keywords} <= {"int", "version"}
    }
    return any(name == "uuid.UUID" and node not in harmless for node, name in reads(tree))


def test_module_uses_no_name_of_another_owner() -> None:
    found = {module: owners(tree) - {module} for module, tree in FOUND.items()}
    assert {module: several for module, several in found.items() if several} == {}


@pytest.mark.parametrize(
    ("code", "owner"),
    [
        ("import json\njson.loads(text)", "text.strict_json"),
        ("import json as syntax\nsyntax.load(file)", "text.strict_json"),
        ("from json import JSONDecoder", "text.strict_json"),
        ("import json.decoder", "text.strict_json"),
        ("import difflib", "text.spelling"),
        ("from difflib import SequenceMatcher", "text.spelling"),
        ("import uuid\nuuid.UUID(text)", "text.uuids"),
        ("import uuid\nuuid.UUID(hex=text)", "text.uuids"),
        ("from uuid import UUID as Read\nmap(Read, texts)", "text.uuids"),
    ],
)
def test_name_of_another_owner_is_found(code: str, owner: str) -> None:
    assert owners(ast.parse(code)) == {owner}


def test_drawing_in_the_documentation_is_the_tested_one() -> None:
    rows = re.findall(r"^   \* - ``(\w+)/?``\n     - (.*)$", DRAWING.read_text(), re.MULTILINE)
    drawn = {name: set(re.findall(r"``(\w+)``", others)) for name, others in rows}
    tested = {**PACKAGES, **MODULES, **FOUNDATIONS}
    assert drawn == {name: set(others.split()) for name, others in tested.items()}
