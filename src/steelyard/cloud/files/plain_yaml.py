"""Plain YAML, the subset that cloud files need, read and written as events of PyYAML.

PyYAML's own loader and dumper build a node for every value, which takes several times as long and
as much memory.
"""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

# No valid cloud file is nested as deeply. Python's limit is higher.
_DEEPEST = 50

_TEXT = "tag:yaml.org,2002:str"
# Text that PyYAML reads as text, but YAML 1.2 as a number or YAML 1.1 as a boolean.
_AMBIGUOUS = re.compile(r"[yYnN]|0o[0-7]+|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
# Text that every reader of YAML reads as text: a word of more letters than ``false`` has, or a
# UUID, which cannot be a number because of its dashes.
_WORD = re.compile(
    r"[A-Za-z_][A-Za-z_-][A-Za-z0-9_.-]{4,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)


class NotPlainError(Exception):
    """Text that is not plain YAML: invalid, or with tags, anchors or duplicate keys."""


def read(yaml: Any, loader: type[Any], text: str, null: str | None) -> Any:
    """Return the mappings, lists and texts of the document; raise NotPlainError.

    Every scalar is text, except that ``null`` is the value of a plain ``null``.
    """
    parser = loader(text)
    try:
        return _Builder(yaml, parser.get_event, null).document()
    except yaml.YAMLError as error:
        raise NotPlainError from error
    finally:
        parser.dispose()


class _Builder:
    """The conversion of the events of one document."""

    def __init__(self, yaml: Any, get_event: Callable[[], Any], null: str | None) -> None:
        self._yaml = yaml
        self._scalar = yaml.ScalarEvent
        self._next = get_event
        self._null = null
        self._keys: dict[str | None, str | None] = {}

    def document(self) -> Any:
        self._expect(self._yaml.StreamStartEvent)
        self._expect(self._yaml.DocumentStartEvent)
        value = self._value(self._next(), 0)
        self._expect(self._yaml.DocumentEndEvent)
        self._expect(self._yaml.StreamEndEvent)
        return value

    def _expect(self, kind: type[Any]) -> None:
        if type(self._next()) is not kind:
            raise NotPlainError

    def _value(self, event: Any, depth: int) -> Any:
        if type(event) is self._scalar:
            return self._text(event)
        if event.anchor is not None or event.tag is not None or depth > _DEEPEST:
            raise NotPlainError  # an alias has an anchor, too
        if type(event) is self._yaml.MappingStartEvent:
            return self._mapping(depth + 1)
        return self._sequence(depth + 1)

    def _text(self, scalar: Any) -> str | None:
        if scalar.tag is not None or scalar.anchor is not None:
            raise NotPlainError
        value: str = scalar.value
        if not scalar.style:
            if not value:
                raise NotPlainError
            if value == "null":
                return self._null
        return value

    def _mapping(self, depth: int) -> dict[str | None, Any]:
        found: dict[str | None, Any] = {}
        following, scalar, text, keys = self._next, self._scalar, self._text, self._keys
        while True:
            event = following()
            if type(event) is not scalar:
                if type(event) is self._yaml.MappingEndEvent:
                    return found
                raise NotPlainError
            key = text(event)
            key = keys.setdefault(key, key)  # most keys are repeated
            if key in found:
                raise NotPlainError
            event = following()
            found[key] = text(event) if type(event) is scalar else self._value(event, depth)

    def _sequence(self, depth: int) -> list[Any]:
        found: list[Any] = []
        while True:
            event = self._next()
            if type(event) is self._yaml.SequenceEndEvent:
                return found
            found.append(self._value(event, depth))


def line_of(yaml: Any, loader: type[Any], file: IO[str], path: Sequence[str]) -> int | None:
    """Return the line of the entry at the path, or of the nearest entry above it.

    Reading stops there. Raises YAMLError if the text before it is invalid.
    """
    parser = loader(file)
    line = None
    try:
        while not isinstance(event := parser.get_event(), yaml.DocumentStartEvent):
            if event is None:
                return None
        event = parser.get_event()
        for step in path:
            found = _child(yaml, parser.get_event, event, step)
            if found is None:
                break
            line, event = found
    finally:
        parser.dispose()
    return line


def _child(
    yaml: Any, get_event: Callable[[], Any], parent: Any, step: str
) -> tuple[int, Any] | None:
    """Return the line of the child at this step and the first event of its value, or None."""
    if isinstance(parent, yaml.MappingStartEvent):
        while not isinstance(key := get_event(), yaml.MappingEndEvent):
            if isinstance(key, yaml.ScalarEvent) and key.value == step:
                return key.start_mark.line + 1, get_event()
            _skip(yaml, get_event, key)
            _skip(yaml, get_event, get_event())
    elif isinstance(parent, yaml.SequenceStartEvent):
        for _ in range(int(step)):
            _skip(yaml, get_event, get_event())
        item = get_event()
        return item.start_mark.line + 1, item
    return None


def _skip(yaml: Any, get_event: Callable[[], Any], event: Any) -> None:
    """Read the events of a value up to its end."""
    depth = 0
    while True:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth == 0:
            return
        event = get_event()


def written(yaml: Any, dumper: type[Any], loader: type[Any], content: Mapping[str, Any]) -> str:
    """Return the content as YAML in which plain scalars are text, as ``read`` reads them.

    Every text that is not a plain word is read back. Raises NotPlainError if one of them differs.
    """
    writer = _Writer(yaml, dumper)
    text = writer.document(content)
    # Each as key and value of a block, in a list, and as key and value of a mapping in one line.
    trial = {odd: {"block": odd, "list": [odd], "line": {odd: odd}} for odd in writer.odd}
    if trial and read(yaml, loader, writer.document(trial), null="null") != trial:
        raise NotPlainError
    return text


class _Writer:
    """The conversion of values to events; the event of a text is made once."""

    def __init__(self, yaml: Any, dumper: type[Any]) -> None:
        self._yaml = yaml
        self._dumper = dumper
        self._resolve = yaml.resolver.Resolver().resolve
        self._texts: dict[str, Any] = {}
        self.odd: list[str] = []
        """The texts that are not plain words."""

    def document(self, content: Mapping[str, Any]) -> str:
        stream = io.StringIO()
        dumper = self._dumper(stream, width=100, allow_unicode=True)
        try:
            dumper.emit(self._yaml.StreamStartEvent())
            dumper.emit(self._yaml.DocumentStartEvent(explicit=False))
            self._emit(dumper.emit, content)
            dumper.emit(self._yaml.DocumentEndEvent(explicit=False))
            dumper.emit(self._yaml.StreamEndEvent())
        finally:
            dumper.dispose()
        return stream.getvalue()

    def _emit(self, emit: Callable[[Any], object], value: Any) -> None:
        if isinstance(value, dict):
            flat = not any(isinstance(item, dict | list) for item in value.values())
            emit(self._yaml.MappingStartEvent(None, None, implicit=True, flow_style=flat))
            scalar = self._scalar
            for key, item in value.items():
                emit(scalar(key))
                if isinstance(item, dict | list):
                    self._emit(emit, item)
                else:
                    emit(scalar(item))
            emit(self._yaml.MappingEndEvent())
        elif isinstance(value, list):
            flat = not any(isinstance(item, dict) for item in value)
            emit(self._yaml.SequenceStartEvent(None, None, implicit=True, flow_style=flat))
            for item in value:
                self._emit(emit, item)
            emit(self._yaml.SequenceEndEvent())
        else:
            emit(self._scalar(value))

    def _scalar(self, value: Any) -> Any:
        """Return the event of a text or number."""
        if type(value) is not str:
            return self._event(str(value), None)
        found = self._texts.get(value)
        if found is None:
            found = self._texts[value] = self._event(value, self._style(value))
        return found

    def _event(self, text: str, style: str | None) -> Any:
        return self._yaml.ScalarEvent(None, None, (True, True), text, style=style)

    def _style(self, text: str) -> str | None:
        if _WORD.fullmatch(text):
            return None
        self.odd.append(text)
        if not text.isprintable():
            return '"'  # other styles turn line breaks, including those of Unicode, into spaces
        if self._resolve(self._yaml.ScalarNode, text, (True, False)) != _TEXT:
            return "'"  # other readers of YAML would read it as another type
        return "'" if _AMBIGUOUS.fullmatch(text) else None
