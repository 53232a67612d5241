"""Whatever users send to the HTTP API, it is about their own servers and their own tags."""

import urllib.parse
from typing import Any

import hypothesis
import pytest
import tag_apis
from hypothesis import strategies as st
from tag_apis import MINE, PROXY, STRANGER, SYSTEM_PROXY, THEIRS, Client, P

from steelyard import errors
from steelyard.tags import api, names, schemas
from steelyard.tags.names import DEFAULT_PREFIXES, Owner
from steelyard.tags.service import Operator

SERVICE = tag_apis.service("sqlite://")
APPLICATION = api.make_application(SERVICE, tag_apis.configuration())
USER, SYSTEM = DEFAULT_PREFIXES
HIDDEN, FOREIGN = "hidden", "foreign"
"""A tag of the system's on a server of the caller's, and one on a server of another project."""

SERVICE.add(Operator(Owner.SYSTEM), MINE, HIDDEN)
SERVICE.add(Operator(Owner.USER), THEIRS, FOREIGN)
SERVICE.poll()

hostile = st.sampled_from(
    [
        HIDDEN,
        FOREIGN,
        SYSTEM + HIDDEN,
        f"{SYSTEM}{HIDDEN}".replace(":", "%3A"),
        f"../../{THEIRS}/tags/{FOREIGN}",
        "..",
        "%",
        "_",
        "' OR '1'='1",
        f"{HIDDEN}\0",
        f"{HIDDEN} ",
        HIDDEN.upper(),
        "\u202e",
        "\ud800",
    ]
)
texts = st.one_of(hostile, st.text(max_size=70))
segments = st.one_of(
    st.sampled_from([MINE, MINE, THEIRS, f"{THEIRS}/../{MINE}", "..", ""]), texts
).map(lambda text: urllib.parse.quote(text.encode("utf-8", "surrogatepass"), safe=""))
targets = st.one_of(
    st.builds("/servers/{}/tags".format, segments),
    st.builds("/servers/{}/tags/{}".format, segments, segments),
    st.just("/servers"),
    st.lists(segments, max_size=6).map(lambda parts: "/" + "/".join(parts)),
    st.binary(max_size=20).map(lambda raw: f"/servers/{MINE}/tags/" + urllib.parse.quote(raw)),
)
methods = st.sampled_from(["GET", "PUT", "DELETE", "POST", "HEAD", "OPTIONS"])
latin = st.text(st.characters(codec="latin-1"), max_size=30)
headers = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "X-Project-Id",
                "X-User-Id",
                "X-Tag-Owner",
                "X-Identity-Status",
                "X-Roles",
                "X-Is-Admin-Project",
                "X-Forwarded-For",
                "Keystone.Token-Auth",
                "Content-Type",
            ]
        ),
        st.one_of(
            st.sampled_from(["q", "v", "system", "user", "Confirmed", "admin", SYSTEM_PROXY]), latin
        ),
    ),
    max_size=3,
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(texts, inner)),
    max_leaves=6,
)
lists = st.one_of(st.lists(texts, max_size=5), values)
replacements = st.fixed_dictionaries({"tags": lists}, optional={"owner": texts})
servers = st.fixed_dictionaries(
    {
        "server": st.fixed_dictionaries(
            {"name": st.one_of(st.sampled_from(["vm-theirs", "vm-new", "vm-newer"]), texts)},
            optional={"id": st.sampled_from([MINE, THEIRS, "new"]), "tags": lists},
        )
    }
)
bodies = st.one_of(st.none(), values, replacements, servers)
questions = st.one_of(
    st.tuples(methods, targets, bodies),
    st.tuples(st.just("POST"), st.just("/servers"), servers),
    st.tuples(st.just("PUT"), st.builds("/servers/{}/tags".format, segments), replacements),
    st.tuples(methods, st.builds(f"/servers/{MINE}/tags/{{}}".format, segments), st.none()),
)
environs = st.sampled_from(
    [{}, {"keystone.token_auth": object(), "HTTP_X_IDENTITY_STATUS": "Confirmed"}]
)


def protected() -> Any:
    """All that is none of the caller's business."""
    mine, theirs = SERVICE.store.state(MINE), SERVICE.store.state(THEIRS)
    system = {key: status for key, status in mine.tags.items() if key[0] == SYSTEM}
    others = [each for each in SERVICE.store.instances() if each.project != "p"]
    return system, theirs, others


@hypothesis.given(questions, st.one_of(st.just([]), headers), environs)
@hypothesis.settings(max_examples=400)
def test_users_reach_only_what_is_theirs(question: Any, extra: Any, environ: Any) -> None:
    method, target, body = question
    before = protected()
    ask = Client(APPLICATION, P, PROXY, validated=False)
    answer = ask(method, target, body, headers=extra, **environ)
    hypothesis.event(f"{method} {answer.status}")
    SERVICE.poll()
    assert protected() == before
    assert answer.status not in (500, 503)
    if answer.status >= 400 and method != "HEAD":
        assert answer.fault[0] == schemas.FAULTS[answer.status]
    for name in (HIDDEN, FOREIGN):
        assert name in str((target, body, extra)) or name.encode() not in answer.body
    # The next one finds nothing of this one.
    SERVICE.clear(Operator(Owner.USER), MINE)
    for instance in SERVICE.store.instances():
        if instance.project == "p" and instance.id != MINE:
            SERVICE.store.forget(instance.id)
    SERVICE.poll()


@hypothesis.given(questions, headers, st.sampled_from([STRANGER, "", "10.1.0.0"]))
def test_strangers_reach_nothing(question: Any, extra: Any, address: str) -> None:
    method, target, body = question
    answer = Client(APPLICATION, P, address, validated=False)(method, target, body, headers=extra)
    assert answer.status in (400, 401, 404, 405) or method == "OPTIONS"


@hypothesis.given(st.one_of(texts, st.text(min_size=55, max_size=65)))
def test_the_schema_of_tags_is_what_tags_are(name: str) -> None:
    """But for surrogates, for which the dialects of patterns have no common word."""
    try:
        names.check_name(name)
        valid = True
    except errors.InvalidTag:
        valid = False
    if any("\ud800" <= char <= "\udfff" for char in name):
        assert not valid
        return
    body = {"tags": [name]}
    if valid:
        assert schemas.check(body, schemas.tags(Owner.USER)) is body
    else:
        with pytest.raises(errors.InvalidTag):
            schemas.check(body, schemas.tags(Owner.USER))
