"""The places of imports in modules, and the ban on loading modules from strings."""

import ast
import functools
import re
import sys
from collections.abc import Iterator

import pytest
import stevedore

from support.project.parsed_sources import FOUND, RUNTIME, imports, names_of, origins, part, used

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Names that load modules from strings, in any module.
LOADERS = {
    "SourceFileLoader",
    "__builtins__",
    "__import__",
    "__loader__",
    "_frozen_importlib",
    "builtins",
    "eval",
    "exec",
    "import_group",
    "import_module",
    "import_opt",
    "importutils",
    "pkgutil",
    "pydoc",
    "resolve_name",
    "runpy",
    "spec_from_file_location",
    "zipimport",
}
# The modules of importlib that load only entry points.
OF_IMPORTLIB = {"metadata", "resources"}
# Names that load entry points; only steelyard.plugins uses them.
ENTRY_POINT_LOADERS = {"EntryPoint", "entry_points", *stevedore.__all__}


def requires_extra(block: ast.AST) -> bool:
    """Return whether the block is a ``with extras.required(…):``."""
    return isinstance(block, ast.With) and any(
        ast.unparse(item.context_expr).startswith("extras.required(") for item in block.items
    )


def is_for_types(block: ast.AST, node: ast.stmt) -> bool:
    """Return whether the block is an ``if TYPE_CHECKING:`` with the statement in its first part."""
    return (
        isinstance(block, ast.If)
        and ast.unparse(block.test) == "TYPE_CHECKING"
        and any(node in ast.walk(each) for each in block.body)
    )


def imported_at_once(tree: ast.Module) -> set[str]:
    """Return the dotted names that importing the module imports."""
    return {
        name
        for node, blocks in imports(tree)
        if not any(isinstance(block, FUNCTIONS) or is_for_types(block, node) for block in blocks)
        for name in names_of(node)
    }


def imports_of_nova_outside_functions(tree: ast.Module) -> set[str]:
    names = imported_at_once(tree)
    return {name for name in names if f"{name}.".startswith(("nova.", "steelyard.nova."))}


def test_nova_is_imported_only_within_functions() -> None:
    found = {
        module: imports_of_nova_outside_functions(tree)
        for module, tree in FOUND.items()
        if part(module) not in {"", "nova"}
    }
    assert {module: names for module, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    [
        "from steelyard.nova.rules import InstalledRules",
        "from steelyard import nova",
        "import steelyard.nova",
        "class Compare:\n    from steelyard.nova import rules",
        "try:\n    import nova\nexcept ImportError:\n    pass",
        "with extras.required('nova', 'rules'):\n    import nova.objects",
        "if TYPE_CHECKING:\n    import json\nelse:\n    import steelyard.nova",
    ],
)
def test_import_of_nova_outside_functions_is_found(code: str) -> None:
    assert imports_of_nova_outside_functions(ast.parse(code))


@functools.cache
def needs_extra(name: str) -> bool:
    """Return whether importing the dotted name fails if no extra is installed."""
    top, _, module = name.partition(".")
    if top != "steelyard":
        return top not in RUNTIME | set(sys.stdlib_module_names)
    # The name may be that of an object in a module.
    module = module if module in FOUND else module.rpartition(".")[0]
    return any(needs_extra(each) for each in imported_at_once(FOUND[module]))


def misplaced_imports(module: str, tree: ast.Module) -> set[str]:
    """Return the imports below the top of the module that the architecture does not permit."""
    found = set()
    for node, blocks in imports(tree):
        names = names_of(node)
        if all(requires_extra(block) or is_for_types(block, node) for block in blocks):
            continue  # at the top
        if part(module) == "cli" and all(name.startswith("steelyard.nova.") for name in names):
            continue
        lazy = any(requires_extra(block) for block in blocks)
        found |= {name for name in names if not (lazy and needs_extra(name))}
    return found


def test_imports_below_the_top_of_a_module_are_of_extras() -> None:
    found = {module: misplaced_imports(module, tree) for module, tree in FOUND.items()}
    assert {module: names for module, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    import json",
        "def f():\n    from steelyard.cloud import loading",
        "def f():\n    import yaml",
        "def f():\n    from steelyard.nova import rules",
        "def f():\n    with extras.required('cli', 'x'):\n        from steelyard.cloud import model",
        "def f():\n    if TYPE_CHECKING:\n        from steelyard.cloud import loading",
        "class C:\n    async def f(self):\n        import json",
        "class C:\n    import json",
        "try:\n    import yaml\nexcept ImportError:\n    pass",
        "if TYPE_CHECKING:\n    import json\nelse:\n    import yaml",
    ],
)
def test_misplaced_import_is_found(code: str) -> None:
    assert misplaced_imports("cloud.model", ast.parse(code))


def attributes_of_steelyard(tree: ast.Module) -> set[str]:
    """Return the attributes that the code reads from the package ``steelyard`` itself."""
    package = {name for name, origin in origins(tree).items() if origin == "steelyard"}
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in package
    }


def test_attribute_of_steelyard_is_its_version_alone() -> None:
    found = {module: attributes_of_steelyard(tree) for module, tree in FOUND.items()}
    assert {module: names for module, names in found.items() if names - {"__version__"}} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import steelyard\nsteelyard.scheduler.pipeline.FilterScheduler",
        "import steelyard as house\nhouse.scheduler",
        "import steelyard.cloud.values\ndef f():\n    return steelyard.scheduler",
    ],
)
def test_attribute_of_steelyard_is_found(code: str) -> None:
    assert attributes_of_steelyard(ast.parse(code)) == {"scheduler"}


def private_elsewhere(module: str, tree: ast.Module) -> set[str]:
    """Return the names in the code that are private to another package."""
    packages = {f"steelyard.{name}".rpartition(".")[0] for name in FOUND}
    found = set()
    for name in used(tree):
        private = re.match(r"(steelyard\b.*?)\._(?!_)", name)
        if private:
            holder = private[1]
            while holder not in packages:
                holder = holder.rpartition(".")[0]
            if not f"steelyard.{module}.".startswith(f"{holder}."):
                found.add(name)
    return found


def test_private_names_are_used_within_their_package_alone() -> None:
    found = {module: private_elsewhere(module, tree) for module, tree in FOUND.items()}
    assert {module: names for module, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    [
        "from steelyard.cloud.files.loading import _NAMESPACE",
        "from steelyard.cloud import loading\nloading._NAMESPACE",
        "from steelyard.cloud.files.loading import Cloud as Loaded\nLoaded._servers",
        "import steelyard.cloud._caches",
        "from steelyard.analysis.checks.fits import _count",
    ],
)
def test_use_of_a_name_private_to_another_package_is_found(code: str) -> None:
    assert private_elsewhere("analysis.capacity", ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "from steelyard import _once",
        "from steelyard.analysis.fitting import _count",
        "from steelyard.cloud import Cloud\nCloud.__name__",
    ],
)
def test_use_of_other_names_is_permitted(code: str) -> None:
    assert private_elsewhere("analysis.checks.fits", ast.parse(code)) == set()


def words(tree: ast.AST) -> Iterator[str]:
    """Yield the names of variables, attributes and modules in the code, and its strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for name in names_of(node):
                yield from name.split(".")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def loaders(tree: ast.AST) -> set[str]:
    """Return the names in the code that can load modules from strings."""
    of_importlib = {name for name in used(tree) if name.startswith("importlib.")}
    return {name for name in of_importlib if name.split(".")[1] not in OF_IMPORTLIB} | (
        (LOADERS | ENTRY_POINT_LOADERS) & {*words(tree)}
    )


def test_module_is_never_loaded_from_a_string() -> None:
    found = {module: loaders(tree) for module, tree in FOUND.items()}
    found["plugins"] -= ENTRY_POINT_LOADERS
    assert {module: names for module, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    [
        "importlib.import_module('json')",
        "from importlib import import_module as load",
        "load = getattr(importlib, 'import_module')",
        "from oslo_utils import importutils",
        "import oslo_utils.importutils as load",
        "pkgutil.resolve_name('json:loads')",
        "load = __import__",
        "vars(__builtins__)['__imp' + 'ort__']",
        "exec('import json')",
        "cfg.CONF.import_opt('debug', 'json')",
        "importlib.util.spec_from_file_location('json', path)",
        "import importlib.util\nimportlib.util.find_spec('json').loader.load_module()",
        "from importlib import util as finding",
        "import importlib._bootstrap",
        "from importlib.machinery import FileFinder",
        "import importlib\nimportlib.reload(sys)",
        "machinery.SourceFileLoader('json', path).load_module()",
        "import pydoc\npydoc.locate('json.loads')",
        "import _frozen_importlib",
        "__loader__.load_module('json')",
        "importlib.metadata.EntryPoint('a', 'json', 'b').load()",
        "from stevedore import driver\ndriver.DriverManager('steelyard.filters', 'a')",
    ],
)
def test_loading_from_a_string_is_found(code: str) -> None:
    assert loaders(ast.parse(code))
