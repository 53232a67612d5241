"""The effects of imports in a fresh interpreter."""

import importlib.metadata
import json
import os
import pkgutil
import re
import subprocess
import sys

import pytest

import steelyard

WATCH = """
import json, sys
done = []
sys.addaudithook(lambda event, args: done.append(event) if event in {
    "socket.connect", "socket.bind", "subprocess.Popen", "os.system", "os.mkdir", "os.remove"
} or event == "open" and set(str(args[1])) & set("wax+") else None)
"""
REPORT = """
from oslo_config import cfg
print(json.dumps({
    "modules": sorted(sys.modules),
    "done": done,
    "groups": [group for group in cfg.CONF._groups],
    "options": sorted(cfg.CONF._opts),
}))
"""


def run(code: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
    ).stdout


def runtime_closure() -> set[str]:
    """Return the distributions that are installed with steelyard without extras."""
    todo, closure = ["steelyard"], set()
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in closure:
            continue
        try:
            required = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        closure.add(name)
        todo += [re.split(r"[ <>=!~;\\[(]", line)[0] for line in required if "extra ==" not in line]
    return closure


def distributions(report: dict[str, list[str]]) -> set[str]:
    """Return the distributions that the modules are from, without those of the environment."""
    providers = importlib.metadata.packages_distributions()
    tops = {module.split(".")[0] for module in report["modules"]}
    found = {
        re.sub(r"[-_.]+", "-", name).lower() for top in tops for name in providers.get(top, [])
    }
    # Editable installations and coverage import these when an interpreter starts.
    return found - {"coverage", "distutils-precedence", "setuptools"}


@pytest.mark.parametrize(
    "code",
    [
        "import steelyard",
        "from steelyard.expressions import Expression",
        "import steelyard.filters.aggregate_instance_type, steelyard.weighers.ram",
        "import steelyard.plugins, steelyard.scheduler, steelyard.conf, steelyard.groups",
        "import steelyard.filters.affinity, steelyard.filters.capacity",
    ],
)
def test_import_loads_only_runtime_dependencies_and_has_no_side_effects(code: str) -> None:
    report = json.loads(run(WATCH + code + REPORT))
    assert "steelyard" in report["modules"]
    assert distributions(report) <= runtime_closure()
    assert report["done"] == []
    assert "steelyard" not in report["groups"]


def test_import_of_any_module_has_no_side_effects() -> None:
    code = """
import importlib, pkgutil, steelyard
for module in pkgutil.walk_packages(steelyard.__path__, "steelyard.", onerror=lambda name: None):
    if not module.name.startswith("steelyard.nova"):  # Nova may not be installed, and has side effects
        importlib.import_module(module.name)
"""
    # Importing urllib3 binds a socket to detect IPv6.
    report = json.loads(run("import urllib3.util.connection" + WATCH + code + REPORT))
    assert {"steelyard.cli.app", "steelyard.cloud.files.loading"} <= set(report["modules"])
    assert report["done"] == []
    assert "steelyard" not in report["groups"]


# The packages of steelyard that plugins and their loading may import.
OF_PLUGINS = {"conf", "filters", "text", "traits", "weighers"}


def parts_loaded(code: str) -> set[str]:
    """Return the packages of steelyard that the code loads, in an interpreter of its own."""
    report = json.loads(run(WATCH + code + REPORT))
    assert distributions(report) <= runtime_closure()
    assert "steelyard" not in report["groups"]
    packages = {part.name for part in pkgutil.iter_modules(steelyard.__path__) if part.ispkg}
    loaded = {name.split(".")[1] for name in report["modules"] if name.startswith("steelyard.")}
    return loaded & packages


@pytest.mark.parametrize("group", ["filters", "weighers"])
def test_loading_plugins_by_name_loads_no_other_package(group: str) -> None:
    code = f"""
from oslo_config import cfg
from steelyard import plugins
from steelyard.{group}.base import {group.upper()} as GROUP
names = [plugin.name for plugin in plugins.installed(GROUP)]
assert len(names) > 2
plugins.load(GROUP, names, cfg.ConfigOpts())
"""
    assert parts_loaded(code) <= OF_PLUGINS


@pytest.mark.parametrize("module", ["filters", "weighers", "plugins"])
def test_importing_plugins_loads_no_other_package(module: str) -> None:
    code = f"""
import importlib, pkgutil
found = importlib.import_module("steelyard.{module}")
for each in pkgutil.iter_modules(getattr(found, "__path__", ()), "steelyard.{module}."):
    importlib.import_module(each.name)
"""
    assert parts_loaded(code) <= OF_PLUGINS


def test_verdicts_and_reasons_do_not_depend_on_the_hash_seed() -> None:
    code = """
from steelyard.aggregates import Judge, content
flavor = {"a": "<or> x <or> y", "b": ">= 4", "c": "1", "aggregate_instance_extra_specs:c": "2"}
for metadata in (
    [{"a": "z, w, v", "b": "5"}, {"b": "3", "c": "1"}],
    [{"a": "x", "b": "5", "c": "1, 2"}, {"k": "1", "j": "2", "force_metadata_check": "true"}],
    [{"a": "q", "b": "s< a, 3", "force_metadata_check": "true"}, {"a": "r"}],
):
    print(Judge(content(flavor)).examine([(f"n{i}", each) for i, each in enumerate(metadata)]))
"""
    outputs = {run(code, PYTHONHASHSEED=str(seed)) for seed in range(6)}
    assert len(outputs) == 1
    assert outputs.pop().count("passed=False") == 3
