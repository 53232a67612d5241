"""The rules of docs/contributing/testing.rst about the places and lengths of test files."""

import ast
import pathlib

import pytest

from support.repository import ROOT

TESTS = ROOT / "tests"
SOURCES = ROOT / "src/steelyard"
KINDS = ("unit", "property", "functional", "services", "in_nova", "browser")
# Folders within a kind that mirror no package, and why.
OWN_FOLDERS = {"project": "tests of the repository itself"}
MOST_LINES = 500
# Longer files, and why they are not split.
LONG = {
    "support/tags/state_machine.py": "one state machine",
}
# Folders of tests/support whose files no test imports, and why.
READ = {
    "sql/host_service/migrations": "alembic runs them",
    "third_party": "tests build a distribution of them",
}


def python_files(folder: pathlib.Path) -> list[pathlib.PurePath]:
    """Return the Python files of a folder of tests, relative to ``tests``."""
    return sorted(path.relative_to(TESTS) for path in folder.rglob("*.py"))


IN_KINDS = [path for kind in KINDS for path in python_files(TESTS / kind)]
SUPPORT = [
    path.relative_to("support")
    for path in python_files(TESTS / "support")
    if not any(path.is_relative_to(f"support/{folder}") for folder in READ)
]


def is_excepted(path: pathlib.PurePath) -> bool:
    return path.parts[1] in OWN_FOLDERS


def mirrored(path: pathlib.PurePath) -> pathlib.Path | None:
    """Return the module or package that a file of tests mirrors, or None."""
    package = SOURCES.joinpath(*path.parent.parts[1:])
    words = path.stem.removeprefix("test_").split("_")
    for length in range(len(words), 0, -1):
        name = "_".join(words[:length])
        for module in (package / f"{name}.py", package / f"_{name}.py", package / name):
            if module.exists():
                return module
    return None


@pytest.mark.parametrize(
    "path", [path for path in IN_KINDS if not is_excepted(path)], ids=pathlib.PurePath.as_posix
)
def test_file_mirrors_a_module(path: pathlib.PurePath) -> None:
    if path.name == "conftest.py":
        assert SOURCES.joinpath(*path.parent.parts[1:]).is_dir()
    else:
        assert path.name.startswith("test_")
        assert mirrored(path), (
            "no module or package of this name; see docs/contributing/testing.rst"
        )


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("unit/test_verdict.py", "verdict.py"),
        ("unit/test_once.py", "_once.py"),
        ("functional/cli/test_outputs_escapes.py", "cli/outputs"),
        ("unit/text/test_strict_json.py", "text/strict_json.py"),
        ("unit/text/test_strict.py", None),
        ("unit/test_strict_json.py", None),
        ("unit/nothing/test_verdict.py", None),
    ],
)
def test_mirrored_module_is_found_by_name(path: str, module: str | None) -> None:
    assert mirrored(pathlib.PurePath(path)) == (module and SOURCES / module)


PACKAGES = sorted(path.parent.relative_to(SOURCES) for path in SOURCES.rglob("__init__.py"))


@pytest.mark.parametrize("package", PACKAGES[1:], ids=pathlib.PurePath.as_posix)
def test_package_has_tests(package: pathlib.PurePath) -> None:
    tested = {mirrored(path) for path in IN_KINDS if path.name.startswith("test_")}
    own = SOURCES / package
    assert any(module and own in {module, module.parent} for module in tested)


def test_tests_folder_has_only_kinds_and_shared_code() -> None:
    there = {path.name for path in TESTS.iterdir() if path.name != "__pycache__"}
    assert there == {*KINDS, "benchmarks", "support", "conftest.py"}


def test_files_are_short() -> None:
    lengths = {
        path.as_posix(): (TESTS / path).read_text().count("\n") for path in python_files(TESTS)
    }
    assert {name for name, lines in lengths.items() if lines > MOST_LINES} == set(LONG)


def imported(path: pathlib.PurePath) -> set[str]:
    """Return the dotted names of the modules and names that a file of tests imports."""
    found: set[str] = set()
    text = (TESTS / path).read_text()
    if "support" not in text:
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{each.name}" for each in node.names)}
    return found


def test_shared_modules_are_used() -> None:
    """Start from tests, benchmarks and the programs in tox.ini, and follow their imports."""
    modules = {
        ".".join(("support", *path.with_suffix("").parts)).removesuffix(".__init__"): path
        for path in SUPPORT
    }
    tox = (ROOT / "tox.ini").read_text()
    left = {name: path for name, path in modules.items() if f"tests/support/{path}" not in tox}
    del left["support"]
    reached = [path for path in python_files(TESTS) if path.parts[0] != "support"]
    reached += [pathlib.PurePath("support", modules[name]) for name in modules.keys() - left.keys()]
    while reached:
        path = reached.pop()
        names, text = imported(path), (TESTS / path).read_text()
        for name, module in list(left.items()):
            if name in names or f'"{module.name}"' in text:
                reached.append(pathlib.PurePath("support", left.pop(name)))
    assert left == {}
