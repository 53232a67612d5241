"""The modules of steelyard, parsed, with their imports."""

import ast
import pathlib
from collections.abc import Iterable, Iterator

import steelyard

ROOT = pathlib.Path(steelyard.__file__).parent
RUNTIME = {"oslo_config", "oslo_log", "stevedore", "steelyard"}


def modules() -> dict[str, ast.Module]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__")
        found[name.strip(".")] = ast.parse(path.read_text())
    return found


def names_of(node: ast.Import | ast.ImportFrom) -> set[str]:
    """Return the dotted names that the statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    assert node.level == 0
    assert node.module
    return {f"{node.module}.{alias.name}" for alias in node.names}


def imports(
    tree: ast.AST, blocks: tuple[ast.AST, ...] = ()
) -> Iterator[tuple[ast.Import | ast.ImportFrom, tuple[ast.AST, ...]]]:
    """Yield each import statement with the blocks that contain it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, blocks
        else:
            yield from imports(node, (*blocks, node))


def imported(tree: ast.AST) -> set[str]:
    """Return the dotted names that are imported, including those in functions and for types."""
    return {name for node, _ in imports(tree) for name in names_of(node)}


def origins(tree: ast.AST) -> dict[str, str]:
    """Return the names that import statements bind, each with the dotted name that it stands for."""
    bound = {}
    for node, _ in imports(tree):
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif alias.asname:
                bound[alias.asname] = alias.name
            else:
                bound[part(alias.name)] = part(alias.name)
    return bound


def reads(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield the expressions that read from an import, each with the dotted name of what it reads."""
    bound = origins(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, *rest = dotted(node)
            if first in bound:
                yield node, ".".join([bound[first], *rest])


def dotted(node: ast.expr) -> list[str]:
    """Return the parts of a dotted name; the first is empty if the name begins with a value."""
    rest: list[str] = []
    while isinstance(node, ast.Attribute):
        rest.append(node.attr)
        node = node.value
    return [node.id if isinstance(node, ast.Name) else "", *reversed(rest)]


def used(tree: ast.AST) -> set[str]:
    """Return the dotted names that are imported, or read from an import."""
    return imported(tree) | {name for _, name in reads(tree)}


def errors_of(trees: Iterable[ast.Module]) -> set[str]:
    """Return the names of SteelyardError and of all classes below it."""
    classes = [
        (node.name, {ast.unparse(base).rpartition(".")[2] for base in node.bases})
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    found = {"SteelyardError"}
    while more := {name for name, bases in classes if bases & found} - found:
        found |= more
    return found


def part(module: str) -> str:
    return module.partition(".")[0]


FOUND = modules()
