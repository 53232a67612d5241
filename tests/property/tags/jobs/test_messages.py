"""Laws of notifications: written ones are read back; invalid input raises one error."""

import contextlib
import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from steelyard.errors import InvalidMessage, InvalidTag
from steelyard.tags import encode
from steelyard.tags.codec import Tag
from steelyard.tags.jobs import messages
from steelyard.tags.names import DEFAULT_PREFIXES, check_name
from steelyard.tags.states.values import Kind, Outcome

letters = st.one_of(
    st.sampled_from("/,_*%~@+ .:-aZ09\u00e9\u3000\U0001f600\n\x00\ud800"), st.characters()
)


def is_name(text: str) -> bool:
    with contextlib.suppress(InvalidTag):
        return bool(check_name(text))
    return False


keys = st.builds(
    Tag,
    st.sampled_from(list(DEFAULT_PREFIXES)),
    st.text(letters, min_size=1, max_size=9).filter(is_name),
)
outcomes = st.builds(
    Outcome,
    job=st.integers(1, 2**63 - 1),
    instance=st.text(st.characters().filter(str.isprintable), min_size=1, max_size=255),
    kind=st.sampled_from(Kind),
    tags=st.frozensets(keys, max_size=20),
    succeeded=st.booleans(),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(letters),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(letters), inner, max_size=3)
    ),
    max_leaves=6,
)
words = st.sampled_from(
    ["OP_TAGS_SET", "OP_TAGS_DEL", "OP_", "success", "error", "running", "vm", "cyclades:user:a"]
)
near = st.fixed_dictionaries(
    {},
    optional={
        name: values | words | st.lists(words, max_size=3) | st.integers(-1, 2**64)
        for name in ("job", "instance", "operation", "tags", "status", "more")
    },
)


@given(outcomes)
def test_written_outcome_is_read_back(outcome: Outcome) -> None:
    text = messages.write(outcome)
    assert text.isascii()
    assert messages.parse(text) == messages.parse(text.encode()) == outcome


@given(st.binary() | st.text(letters) | values.map(json.dumps) | near.map(json.dumps))
@example(b"\x80")
@example("[" * 10_000)
def test_any_input_gives_an_outcome_none_or_invalid_message(body: Any) -> None:
    try:
        outcome = messages.parse(body)
    except InvalidMessage as error:
        assert str(error).isprintable()  # noqa: PT017
        return
    if outcome is not None:
        assert messages.parse(messages.write(outcome)) == outcome
        for prefix, name in outcome.tags:
            assert encode(name, prefix)


@given(outcomes, st.data())
def test_truncated_notification_is_rejected(outcome: Outcome, data: st.DataObject) -> None:
    text = messages.write(outcome)
    part = text[: data.draw(st.integers(0, len(text) - 1))]
    try:
        messages.parse(part)
    except InvalidMessage:
        return
    raise AssertionError(part)
