"""Errors for packages of extras that are not installed."""

import ast
import pathlib
import sys
import tomllib
from collections.abc import Callable, Iterator

import pytest

import steelyard
from steelyard import consumers, extras, page, tags
from steelyard.errors import MissingExtra
from support.repository import ROOT

MODULES = pathlib.Path(steelyard.__file__).parent
PYPROJECT = ROOT / "pyproject.toml"

Declare = Callable[..., None]


def test_required_with_a_missing_package_names_the_feature_and_the_command(
    requirements: Declare,
) -> None:
    requirements(
        "oslo-config>=9.4.0",
        "no-such-lathe>=3.1; extra == 'turning'",
        "pytest>=1; extra == 'turning'",
        "no-such-mill<3,>=2; extra == 'turning'",
        "no-such-saw; extra == 'sawing'",
    )
    with (
        pytest.raises(MissingExtra) as raised,
        extras.required("turning", "the lathe"),
    ):
        import no_such_lathe  # type: ignore[import-not-found]  # noqa: F401
    assert str(raised.value) == (
        "the lathe needs 'no_such_lathe': the extra 'turning' is not installed; run "
        f"{sys.executable} -m pip install 'no-such-lathe>=3.1' 'no-such-mill<3,>=2'"
    )


def test_required_with_all_packages_installed_passes_the_error(requirements: Declare) -> None:
    requirements("pytest>=1; extra == 'turning'")
    with (
        pytest.raises(ModuleNotFoundError, match="No module named 'no_such_lathe'"),
        extras.required("turning", "the lathe"),
    ):
        import no_such_lathe  # noqa: F401


@pytest.mark.parametrize("module", ["steelyard.no_such_module", "steelyard"])
def test_required_with_a_missing_module_of_steelyard_passes_the_error(
    requirements: Declare, module: str
) -> None:
    requirements("no-such-lathe>=3.1; extra == 'turning'")
    with (
        pytest.raises(ModuleNotFoundError) as raised,
        extras.required("turning", "the lathe"),
    ):
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)
    assert raised.value.name == module


def test_required_with_a_package_that_fails_to_load_passes_the_error(requirements: Declare) -> None:
    requirements("no-such-lathe>=3.1; extra == 'turning'")
    with (
        pytest.raises(ImportError, match="cannot import name 'no_such_name'") as raised,
        extras.required("turning", "the lathe"),
    ):
        from tomllib import no_such_name  # type: ignore[attr-defined]  # noqa: F401
    assert not isinstance(raised.value, ModuleNotFoundError)


def test_install_command_quotes_the_interpreter(
    requirements: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirements("no-such-lathe; extra == 'turning'")
    monkeypatch.setattr(sys, "executable", "/home/a b/bin/python")
    assert extras.install_command("turning") == (
        "'/home/a b/bin/python' -m pip install no-such-lathe"
    )


@pytest.mark.parametrize("package", [consumers, tags, page])
def test_unknown_name_of_a_package_raises_attribute_error(package: object) -> None:
    with pytest.raises(AttributeError, match=r"module 'steelyard\.[a-z.]+' has no attribute 'X'"):
        package.X  # type: ignore[attr-defined]  # noqa: B018


def calls() -> Iterator[tuple[str, ast.With, ast.Call]]:
    """Yield each block of extras.required in steelyard, with its place."""
    for path in sorted(MODULES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.With):
                for item in node.items:
                    call = item.context_expr
                    if isinstance(call, ast.Call) and ast.unparse(call.func) == "extras.required":
                        yield f"{path.relative_to(MODULES)}:{node.lineno}", node, call


def test_required_blocks_contain_imports_and_name_declared_extras() -> None:
    declared = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    found = list(calls())
    assert len(found) > 20
    for place, block, call in found:
        extra = call.args[0]
        if isinstance(extra, ast.Constant):
            assert extra.value in declared, place
        first = block.body[0]
        loads_entry_point = "find_command(" in ast.unparse(first)
        assert isinstance(first, ast.Import | ast.ImportFrom) or loads_entry_point, place


def test_source_imports_no_module_by_name() -> None:
    loaders = ("import_module", "__import__")
    for path in sorted(MODULES.rglob("*.py")):
        assert [each for each in loaders if each in path.read_text()] == [], path
