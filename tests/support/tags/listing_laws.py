"""Laws of lists of instances, for every database, on generated instances with tags."""

import collections
import dataclasses
from collections.abc import Collection, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from hypothesis import strategies as st

from steelyard.tags import Instance, Status, TagFilter, TagStore
from steelyard.tags.codec import Tag
from steelyard.tags.database import model
from steelyard.tags.database.listing import Page, TaggedInstance

USER, SYSTEM = "cyclades:user:", "cyclades:system:"
# Some databases would find several of these equal.
NAMES = ["a", "A", "á", "a ", "b", "%", "_", "c", "d", "e", "f"]
PROJECTS = ["p", "P", "q"]


class Row(NamedTuple):
    """An instance in a generated database."""

    project: str
    tags: Mapping[Tag, Status]


_tags = st.dictionaries(
    st.builds(Tag, st.sampled_from([USER, USER, SYSTEM]), st.sampled_from(NAMES)),
    st.sampled_from(Status),
    max_size=8,
)
databases = st.lists(st.builds(Row, st.sampled_from(PROJECTS), _tags), max_size=8)
_names = st.frozensets(st.sampled_from(NAMES), max_size=7)
filters = st.builds(TagFilter, _names, _names, _names, _names)
prefixes = st.sampled_from([[USER], [SYSTEM], [USER, SYSTEM]])
projects = st.none() | st.sampled_from([*PROJECTS, "nobody's"])


def fill(store: TagStore, database: Collection[Row]) -> dict[str, tuple[Instance, Row]]:
    """Replace all instances by those of a generated database, and return these by id."""
    made = {
        f"s{n * 7 % 10}-{n}": (Instance(f"s{n * 7 % 10}-{n}", f"vm-{n}", row.project, "u"), row)
        for n, row in enumerate(database)
    }
    numbered = list(enumerate(made.values(), 1))

    def work(connection: sa.Connection) -> None:
        connection.execute(sa.delete(model.tags))
        connection.execute(sa.delete(model.instances))
        for number, (each, row) in numbered:
            fields = {"id": each.id, "name": each.name, "project": each.project, "user": each.user}
            connection.execute(sa.insert(model.instances).values(number=number, **fields))
            for tag, status in row.tags.items():
                key = {"instance_id": number, "prefix": tag.prefix, "name": tag.name}
                connection.execute(sa.insert(model.tags).values(**key, status=status.value))

    store.in_a_transaction(work)
    return made


def accepts(wanted: TagFilter, names: Collection[str]) -> bool:
    """Return whether the filter accepts a server with tags of these names, in the plainest way."""
    return (
        all(name in names for name in wanted.all_of)
        and (not wanted.any_of or any(name in names for name in wanted.any_of))
        and (not wanted.not_all_of or any(name not in names for name in wanted.not_all_of))
        and not any(name in names for name in wanted.not_any_of)
    )


def check_list_has_the_accepted_instances(
    store: TagStore, made: Mapping[str, tuple[Instance, Row]], page: Page
) -> None:
    found = store.tagged(page)
    expected = {}
    for each, row in made.values():
        mine = {tag: status for tag, status in row.tags.items() if tag.prefix in page.prefixes}
        names = {tag.name for tag in mine}
        if page.project in (None, each.project) and accepts(page.wanted, names):
            expected[each.id] = TaggedInstance(each, mine)
    assert {each.instance.id: each for each in found} == expected
    assert len(found) == len(expected)


def check_pages_are_the_whole_list(store: TagStore, page: Page, size: int) -> None:
    whole = store.tagged(page)
    pages: list[TaggedInstance] = []
    after = ""
    while part := store.tagged(dataclasses.replace(page, size=size, after=after)):
        assert len(part) <= size
        pages += part
        after = part[-1].instance.id
    assert pages == whole
    assert max(collections.Counter(each.instance.id for each in pages).values(), default=1) == 1
