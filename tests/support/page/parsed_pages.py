"""Parsed HTML pages: elements and text."""

import dataclasses
import html.parser

_VOID = {"meta", "link", "input", "br", "wbr", "col", "rect", "path"}
_NOT_TEXT = {"style", "script"}


@dataclasses.dataclass
class Element:
    """An element with its attributes and all text inside it."""

    tag: str
    attributes: dict[str, str]
    text: str = ""

    def has_class(self, name: str) -> bool:
        return name in self.attributes.get("class", "").split()


class Page(html.parser.HTMLParser):
    """A parsed page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        closed = self._open.pop()
        assert closed.tag == tag, f"</{tag}> closes <{closed.tag}>"

    def handle_data(self, data: str) -> None:
        # Style and script are not part of the text around them.
        inner = self._open[-1:]
        for element in inner if inner and inner[0].tag in _NOT_TEXT else self._open:
            element.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"unexpected comment: {data!r}")

    @property
    def structure(self) -> list[tuple[str, tuple[str, ...]]]:
        """The elements with the names of their attributes, without text."""
        return [(each.tag, tuple(each.attributes)) for each in self.elements]

    def all(self, tag: str, class_: str | None = None) -> list[Element]:
        return [
            each
            for each in self.elements
            if each.tag == tag and (class_ is None or each.has_class(class_))
        ]

    def one(self, tag: str, class_: str | None = None) -> Element:
        (found,) = self.all(tag, class_)
        return found

    def by_id(self, identifier: str) -> Element:
        (found,) = [each for each in self.elements if each.attributes.get("id") == identifier]
        return found

    def rows(self, table: str) -> list[list[str]]:
        """Return the text of each cell in the body of a table, row by row."""
        return self.rows_of(self.by_id(table))

    def rows_of(self, table: Element) -> list[list[str]]:
        """Return the text of each cell in the body of a table, row by row."""
        start = next(index for index, each in enumerate(self.elements) if each is table)
        found: list[list[str]] = []
        for element in self.elements[start + 1 :]:
            if element.tag in ("table", "section"):
                break
            if element.tag == "tr":
                found.append([])
            if element.tag in ("th", "td"):
                found[-1].append(" ".join(element.text.split()))
        return found[1:]
