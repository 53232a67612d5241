"""The public names: modules export them, the reference lists them, and guides use them."""

import ast
import importlib
import importlib.metadata
import json
import pathlib
import re

import pytest

from steelyard import cli, plugins
from steelyard.consumers.base import CONSUMER_MODELS
from steelyard.filters.base import FILTERS
from steelyard.plugins import EntryPointGroup
from steelyard.tags.backends.base import TAG_BACKENDS
from steelyard.traits.requests import QUERY_BUILDERS
from steelyard.weighers.base import WEIGHERS
from support.project.parsed_sources import FOUND, errors_of, origins
from support.repository import DOCS

PUBLIC = {
    "steelyard.attributes": "read",
    "steelyard.clients": "Placement ask",
    "steelyard.cloud": "Aggregate Cloud Flavor Host Server load_providers",
    "steelyard.consumers": "ConsumerStore ConsumerType PlacementConsumers QuotaUsage include_name",
    "steelyard.errors": "AdditionFailed BackendRefused BackendUnreachable BadRequest CannotBeKept "
    "ConcurrentUpdate Conflict Forbidden InvalidAllocations InvalidCloud InvalidConsumerType "
    "InvalidExpression InvalidMessage InvalidProvider InvalidQuery InvalidServerGroup InvalidTag "
    "InvalidTrait MicroversionTooLow MissingExtra NoAccess NotFound OutcomeUnknown OverCapacity "
    "OverQuota PluginError PolicyNotSupported ServiceError SteelyardError TransactionAborted "
    "Unauthorized UnsupportedMicroversion "
    "UpgradeNeeded WrongBackend",
    "steelyard.expressions": "Expression",
    "steelyard.filters.aggregate_instance_type": "AggregateInstanceTypeFilter",
    "steelyard.filters.base": "Filter ServerLimit",
    "steelyard.filters.traits": "TraitsFilter",
    "steelyard.groups": "POLICIES_SCHEMA POLICY_SCHEMA Policy ServerGroup check_supported",
    "steelyard.nova": "AggregateInstanceTypeFilter ServerGroupSoftAffinityWeigher "
    "ServerGroupSoftAntiAffinityWeigher all_filters all_weighers",
    "steelyard.scheduler": "Decision FilterScheduler NoValidHost Request Selection",
    "steelyard.tags": "BackendIdentity Caller Instance JobStatus Look State Status TagBackend "
    "TagFilter TagService TagStore TagsClient decode encode include_name plan_reconciliation",
    "steelyard.traits": "Candidate CandidatesRequest Inventory ProviderTrees ProvidersRequest "
    "RequestGroup ResourceProvider TraitQuery",
    "steelyard.traits.sql": "PLACEMENT TraitTables condition",
    "steelyard.verdict": "PASSED Verdict",
    "steelyard.weighers.base": "Weigher",
    "steelyard.weighers.soft_affinity": "ServerGroupSoftAffinityWeigher "
    "ServerGroupSoftAntiAffinityWeigher",
}
# Packages whose ``__all__`` is for steelyard alone.
INTERNAL = {"steelyard.analysis.checks", "steelyard.conf", "steelyard.page"}
# Internal errors. Users catch their public base classes, or those of oslo.config.
NARROWER = {"InvalidOption", "NoValidHostForRequest", "StillBeingCreated", "TryAgain"}
# This module can be imported only if Nova is installed.
NEEDS_NOVA = "steelyard.nova"
# Objects that web servers load by name, and that make applications for services.
APPLICATIONS = {
    "steelyard.consumers.http.api.application",
    "steelyard.consumers.http.api.make_application",
    "steelyard.tags.http.api.application",
}
DOCUMENTATION = DOCS / "reference"
REFERENCE = DOCUMENTATION / "api.rst"
GUIDES = sorted(DOCS.rglob("*.rst"))
PACKAGES = {f"steelyard.{name}".rpartition(".")[0] for name in FOUND}
GROUPS = [FILTERS, WEIGHERS, QUERY_BUILDERS, CONSUMER_MODELS, TAG_BACKENDS]


def exported(module: str) -> list[str]:
    """Return the ``__all__`` of the module, without importing it."""
    (value,) = (
        node.value
        for node in FOUND[module.removeprefix("steelyard.")].body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return list(ast.literal_eval(value))


def names(tree: ast.Module, context: type[ast.expr_context]) -> set[str]:
    """Return the names that the code assigns (Store) or reads (Load)."""
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, context)
    }


def offered(tree: ast.Module) -> set[str]:
    """Return the public names that the module binds and does not read itself."""
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    bound = defined | origins(tree).keys() | names(tree, ast.Store)
    return {name for name in bound - names(tree, ast.Load) if not name.startswith("_")}


@pytest.mark.parametrize("module", PUBLIC)
def test_module_exports_its_public_names_alone(module: str) -> None:
    assert exported(module) == PUBLIC[module].split()


def test_no_other_module_has_public_names() -> None:
    found = {
        f"steelyard.{name}" for name, tree in FOUND.items() if "__all__" in names(tree, ast.Store)
    }
    assert found == PUBLIC.keys() | INTERNAL


@pytest.mark.parametrize("package", sorted(PACKAGES & (PUBLIC.keys() | INTERNAL)))
def test_package_offers_its_public_names_alone(package: str) -> None:
    assert offered(FOUND[package.removeprefix("steelyard.")]) <= set(exported(package))


@pytest.mark.parametrize(
    "code",
    [
        "from steelyard.cloud.files.loading import load as load",
        "from steelyard.cloud.files.loading import read as load",
        "from steelyard.cloud import loading as load",
        "load = loading.load",
        "def load():\n    pass",
        "if TYPE_CHECKING:\n    from steelyard.cloud.files.loading import load",
    ],
)
def test_offered_name_is_found(code: str) -> None:
    assert offered(ast.parse(code)) == {"load"}


@pytest.mark.parametrize("module", sorted(PUBLIC.keys() - {NEEDS_NOVA}))
def test_public_names_can_be_imported(module: str) -> None:
    found = importlib.import_module(module)
    for name in PUBLIC[module].split():
        assert getattr(found, name) is not None


def test_all_errors_are_public() -> None:
    public = {name for several in PUBLIC.values() for name in several.split()}
    assert errors_of(FOUND.values()) - public == NARROWER


def test_error_of_any_module_is_found() -> None:
    one = ast.parse("class Lost(errors.NotFound, KeyError):\n    pass")
    other = ast.parse("class NotFound(SteelyardError):\n    pass")
    assert errors_of([one, other]) == {"Lost", "NotFound", "SteelyardError"}


def test_nova_package_exports_every_plugin_for_nova() -> None:
    adapted = {
        point.name
        for point in importlib.metadata.distribution("steelyard").entry_points
        if point.group in {FILTERS.name, WEIGHERS.name} and point.load().in_nova
    }
    assert {*PUBLIC[NEEDS_NOVA].split()} == adapted | {"all_filters", "all_weighers"}


def test_reference_lists_all_public_names_and_no_others() -> None:
    text = REFERENCE.read_text()
    listed = re.findall(
        r"^\.\. (?:auto)?(?:class|data|exception|function):: ([\w.]+)", text, re.MULTILINE
    )
    public = [f"{module}.{name}" for module, names in PUBLIC.items() for name in names.split()]
    assert sorted(listed) == sorted(public)
    modules = re.findall(r"^\.\. automodule:: .+\n(.*)$", text, re.MULTILINE)
    assert set(modules) == {"   :no-members:"}


def names_in(guide: str) -> set[str]:
    """Return the names of steelyard that the guide imports outside its comments."""
    text = re.sub(r"^\.\.\n(?:(?:   .*)?\n)+", "", guide, flags=re.MULTILINE)
    found = re.findall(
        r"^(?:>>>|\.\.\.|  ) +from (steelyard[\w.]*) import (.+)$", text, re.MULTILINE
    )
    return {f"{module}.{name.split()[0]}" for module, names in found for name in names.split(", ")}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_guide_imports_public_names_alone(guide: pathlib.Path) -> None:
    public = {f"{module}.{name}" for module, names in PUBLIC.items() for name in names.split()}
    assert names_in(guide.read_text()) <= public | PUBLIC.keys() | APPLICATIONS


def test_import_of_a_guide_is_found() -> None:
    guide = (
        ">>> from steelyard.page import render, view_of\n\n"
        "   from steelyard.tags.http.api import application as tags\n\n"
        "..\n   >>> from steelyard.cloud import loading\n\n   >>> from steelyard import conf\n\n"
    )
    assert names_in(guide) == {
        "steelyard.page.render",
        "steelyard.page.view_of",
        "steelyard.tags.http.api.application",
    }


def test_groups_of_plugins_are_those_of_the_distribution() -> None:
    points = importlib.metadata.distribution("steelyard").entry_points
    groups = {point.group for point in points if point.group.startswith("steelyard.")}
    assert groups - {"steelyard.commands"} == {group.name for group in GROUPS}


def test_plugins_command_lists_all_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plugins", "-f", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["plugins"]
    assert {row["kind"] for row in rows} == {group.kind for group in GROUPS}


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_reference_lists_the_plugins_of_a_group(group: EntryPointGroup) -> None:
    assert f".. list-plugins:: {group.name}\n" in (DOCUMENTATION / "plugins.rst").read_text()


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_plugins_of_steelyard_fulfil_their_contract(group: EntryPointGroup) -> None:
    names = [plugin.name for plugin in plugins.installed(group)]
    assert names
    assert plugins.load_classes(group, names).keys() == set(names)
