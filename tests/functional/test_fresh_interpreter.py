"""What importing does, seen from an interpreter that has imported nothing else."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys

import pytest

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
    """The distributions that are installed with steelyard when no extra is asked for."""
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
def test_importing_pulls_in_nothing_else_and_does_nothing(code: str) -> None:
    report = json.loads(run(WATCH + code + REPORT))
    providers = importlib.metadata.packages_distributions()
    tops = {module.split(".")[0] for module in report["modules"]}
    found = {
        re.sub(r"[-_.]+", "-", name).lower() for top in tops for name in providers.get(top, [])
    }
    assert "steelyard" in report["modules"]
    # Modules that start with every interpreter of an editable or instrumented environment.
    assert found - runtime_closure() <= {"coverage", "distutils-precedence", "setuptools"}
    assert report["done"] == []
    assert "steelyard" not in report["groups"]


def test_no_module_does_anything_when_it_is_imported() -> None:
    code = """
import importlib, pkgutil, steelyard
for module in pkgutil.walk_packages(steelyard.__path__, "steelyard.", onerror=lambda name: None):
    if not module.name.startswith("steelyard.nova"):  # needs Nova, whose import is its own affair
        importlib.import_module(module.name)
"""
    report = json.loads(run(WATCH + code + REPORT))
    assert {"steelyard.cli.app", "steelyard.scheduler.cloud_file"} <= set(report["modules"])
    assert report["done"] == []
    assert "steelyard" not in report["groups"]


def test_loading_a_filter_pulls_in_nothing_else() -> None:
    code = """
from oslo_config import cfg
from steelyard import plugins
plugins.load(plugins.FILTERS, ["AggregateInstanceTypeFilter"], cfg.ConfigOpts())
"""
    report = json.loads(run(WATCH + code + REPORT))
    unwanted = {"cliff", "tqdm", "sqlalchemy", "nova", "steelyard.cli", "steelyard.scheduler"}
    assert not unwanted & set(report["modules"])
    assert "steelyard" not in report["groups"]


def test_hash_seeds_change_no_verdict_and_no_reason() -> None:
    code = """
from steelyard.aggregates import Judge, content
flavor = {"a": "<or> x <or> y", "b": ">= 4", "c": "1", "aggregate_instance_extra_specs:c": "2"}
for metadata in (
    [{"a": "z, w, v", "b": "5"}, {"b": "3", "c": "1"}],
    [{"a": "x", "b": "5", "c": "1, 2"}, {"k": "1", "j": "2", "force_metadata_check": "true"}],
    [{"a": "q", "b": "s< a, 3", "force_metadata_check": "true"}, {"a": "r"}],
):
    print(Judge(content(flavor)).examine([(f"n{i}", said) for i, said in enumerate(metadata)]))
"""
    said = {run(code, PYTHONHASHSEED=str(seed)) for seed in range(6)}
    assert len(said) == 1
    assert said.pop().count("passed=False") == 3
