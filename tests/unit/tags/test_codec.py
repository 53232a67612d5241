"""Tags as values: the prefix, the name and the encoded form."""

import pytest

from steelyard.tags import codec, decode


def test_tag_is_immutable() -> None:
    tag = decode("cyclades:user:gr/C3/B6/C3/9Fe")
    for field in ("name", "encoded", "color"):
        with pytest.raises(AttributeError):
            setattr(tag, field, "smtp")
    assert (tag, tag.encoded) == (("cyclades:user:", "größe"), "cyclades:user:gr/C3/B6/C3/9Fe")


def test_encoded_form_of_equal_tags_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = codec.Tag("cyclades:user:", "met again").encoded
    tag = decode(encoded)
    monkeypatch.setattr(codec, "encode", lambda *_: pytest.fail("encoded a second time"))
    assert codec.Tag(*decode(encoded)).encoded == tag.encoded == encoded
