"""The syntax of cloud files: YAML or JSON to plain values, and back.

Every scalar is read as text, because metadata such as ``~``, ``true`` and ``1`` is text in Nova's
API.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from steelyard import errors, extras
from steelyard.cloud.files import plain_yaml
from steelyard.text import strict_json

Path = tuple[str, ...]

# The tags of values without an explicit tag.
_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str")}

# The first characters of aliases, anchors, tags and block scalars.
_INDICATORS = ("*", "&", "!", ">", "|")


class Mistake(Exception):
    """A mistake in the content of a file; ``placing_mistakes`` adds the file and the line."""

    def __init__(
        self, message: str, path: Path = (), line: int | None = None, text: object = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.line = line
        self.text = text


def parsed(file: IO[str], name: str) -> Any:
    """Return the content of a cloud file; ``null`` in YAML is read as text."""
    return _parsed(file, name, null="null")


def parsed_with_nulls(file: IO[str], name: str) -> Any:
    """Return the content of a file; ``null`` is read as None."""
    return _parsed(file, name, null=None)


def _parsed(file: IO[str], name: str, null: str | None) -> Any:
    with placing_mistakes(file, name):
        return _parse_json(file) if name.lower().endswith(".json") else _parse_yaml(file, null)


@contextlib.contextmanager
def placing_mistakes(
    file: IO[str], name: str, where: Callable[[Path], str] = ".".join
) -> Iterator[None]:
    """Convert a Mistake in the block into InvalidCloud, with the file and the line.

    ``where`` is a function that returns the text for a path.
    """
    try:
        yield
    except Mistake as mistake:
        invalid = errors.InvalidCloud(
            mistake.message,
            name,
            line=_line(file, mistake.path) if mistake.line is None else mistake.line,
            path=mistake.path,
            text=mistake.text,
        )
        invalid.where = where(mistake.path)
        raise invalid from mistake
    except (RecursionError, strict_json.NestingError) as error:
        raise errors.InvalidCloud("nested too deeply", name) from error
    except UnicodeDecodeError as error:
        raise errors.InvalidCloud(f"invalid UTF-8: {error}", name) from error


def as_yaml(description: Mapping[str, Any]) -> str:
    """Return the description as YAML that ``parsed`` reads."""
    yaml = _yaml()
    dumper = getattr(yaml, "CBaseDumper", yaml.BaseDumper)  # in C if available
    return plain_yaml.written(yaml, dumper, _base_loader(yaml), description)


def unkept(content: bytes) -> list[str]:
    """Return the kinds of text that a saved cloud file loses: comments, anchors."""
    if b"#" not in content and b"&" not in content:
        return []
    yaml = _yaml()
    text = content.decode("utf-8")
    found = set()
    end = 0
    for token in yaml.scan(text, Loader=_base_loader(yaml)):
        start = token.start_mark.index
        between = text[end:start]
        if isinstance(token, yaml.ScalarToken) and token.style in ("|", ">"):
            between += text[start:].partition("\n")[0]
        if "#" in between:
            found.add("comments")
        if isinstance(token, yaml.AnchorToken):
            found.add("anchors")
        end = max(end, token.end_mark.index)
    if "#" in text[end:]:
        found.add("comments")
    return sorted(found, reverse=True)


def _parse_json(file: IO[str]) -> Any:
    try:
        return strict_json.loads(file.read(), parse_int=str, parse_float=str, parse_constant=str)
    except strict_json.RepeatedKeyError as error:
        raise Mistake(f"duplicate key {error.key!r}", text=error.key) from error
    except json.JSONDecodeError as error:
        raise Mistake(f"invalid JSON: {error.msg}", line=error.lineno) from error


def _parse_yaml(file: IO[str], null: str | None) -> Any:
    yaml = _yaml()
    text = file.read().removeprefix("\ufeff")  # a byte order mark would shift PyYAML's marks
    with contextlib.suppress(plain_yaml.NotPlainError):
        return plain_yaml.read(yaml, _base_loader(yaml), text, null)
    try:
        return yaml.load(text, Loader=_loader(yaml, null))
    except yaml.MarkedYAMLError as error:
        marks = [mark for mark in (error.context_mark, error.problem_mark) if mark]
        hint = ""
        if any(text.startswith(_INDICATORS, mark.index) for mark in marks):
            hint = "; put quotes around a value that begins with *, &, !, > or |"
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise Mistake(f"invalid YAML: {error.problem}{hint}", line=line) from error
    except yaml.reader.ReaderError as error:
        raise Mistake(
            f"invalid YAML: unacceptable character #x{error.character:04x}: {error.reason}"
        ) from error


def _yaml() -> Any:
    with extras.required("cli", "a cloud file in YAML"):
        import yaml  # noqa: PLC0415  (an extra, and only for YAML)
    return yaml


def _base_loader(yaml: Any) -> Any:
    """Return PyYAML's loader that reads every scalar as text, written in C if available."""
    return getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def _loader(yaml: Any, null: str | None) -> type[Any]:
    """Return a loader that reads scalars as text and raises a Mistake where PyYAML is lenient.

    ``null`` is the value of a plain ``null`` in YAML.
    """

    class Loader(_base_loader(yaml)):  # type: ignore[misc]  # known only if PyYAML is installed
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002  (PyYAML's)
            mapping = super().construct_mapping(node, deep=deep)
            if len(mapping) != len(node.value):
                seen: set[Any] = set()
                for key, _ in node.value:
                    if key.value in seen:
                        raise Mistake(
                            f"duplicate key {key.value!r}",
                            line=key.start_mark.line + 1,
                            text=key.value,
                        )
                    seen.add(key.value)
            return dict(mapping)

        def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
            if node.tag not in _PLAIN_TAGS:
                raise Mistake(
                    f"unsupported tag {node.tag!r}; put quotes around a value that begins with !",
                    line=node.start_mark.line + 1,
                    text=node.tag,
                )
            return super().construct_object(node, deep=deep)

        def construct_scalar(self, node: Any) -> str | None:
            if not node.value and not node.style:
                raise Mistake(
                    "missing value; write a space after the colon of a key, write '' for empty "
                    "text, and put quotes around a lone !",
                    line=node.start_mark.line + 1,
                )
            return null if node.value == "null" and not node.style else str(node.value)

    return Loader


def _line(file: IO[str], path: Path) -> int | None:
    """Return the line of the entry at the path, or of the nearest entry above it."""
    if not file.seekable():
        return None
    file.seek(0)
    try:
        yaml = _yaml()
        return plain_yaml.line_of(yaml, _base_loader(yaml), file, path)
    except errors.MissingExtra:  # the file is JSON, which needs no PyYAML
        return None
    except yaml.YAMLError:  # the file is JSON that is not YAML
        return None
