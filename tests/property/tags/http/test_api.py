"""Isolation in the HTTP API: no request of a user reaches servers or tags of others."""

import urllib.parse
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from steelyard import errors
from steelyard.tags import names
from steelyard.tags.http import api, schemas
from steelyard.tags.names import DEFAULT_PREFIXES, Owner
from steelyard.tags.service import Operator
from steelyard.web import faults
from support.examples import examples
from support.tags import in_process_api
from support.tags.in_process_api import MINE, PROXY, STRANGER, SYSTEM_PROXY, THEIRS, Client, P

# Coverage doubles the time of these tests, and others reach the same lines.
pytestmark = pytest.mark.usefixtures("no_cover")

SERVICE = in_process_api.service("sqlite://")
APPLICATION = api.make_application(SERVICE, in_process_api.configuration())
USER, SYSTEM = DEFAULT_PREFIXES
HIDDEN, FOREIGN = "hidden", "foreign"
"""A system tag on a server of the caller, and a user tag on a server of another project."""

SERVICE.add(Operator(Owner.SYSTEM), MINE, HIDDEN)
SERVICE.add(Operator(Owner.USER), THEIRS, FOREIGN)
SERVICE.jobs.poll()

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
requests = st.one_of(
    st.tuples(methods, targets, bodies),
    st.tuples(st.just("POST"), st.just("/servers"), servers),
    st.tuples(st.just("PUT"), st.builds("/servers/{}/tags".format, segments), replacements),
    st.tuples(methods, st.builds(f"/servers/{MINE}/tags/{{}}".format, segments), st.none()),
)
environments = st.sampled_from(
    [{}, {"keystone.token_auth": object(), "HTTP_X_IDENTITY_STATUS": "Confirmed"}]
)


def protected() -> Any:
    """Return the tags and servers that the caller must not reach."""
    mine, theirs = SERVICE.store.state(MINE), SERVICE.store.state(THEIRS)
    system = {key: status for key, status in mine.tags.items() if key[0] == SYSTEM}
    others = [each for each in SERVICE.store.instances() if each.project != "p"]
    return system, theirs, others


@hypothesis.given(requests, st.one_of(st.just([]), headers), environments)
@hypothesis.settings(max_examples=examples(75))
def test_users_reach_only_their_own_servers_and_tags(
    request: Any, extra: Any, environ: Any
) -> None:
    method, target, body = request
    before = protected()
    ask = Client(APPLICATION, P, PROXY, validated=False)
    answer = ask(method, target, body, headers=extra, **environ)
    hypothesis.event(f"{method} {answer.status}")
    SERVICE.jobs.poll()
    assert protected() == before
    assert answer.status not in (500, 503)
    if answer.status >= 400 and method != "HEAD":
        assert answer.fault[0] == faults.NAMES[answer.status]
    for name in (HIDDEN, FOREIGN):
        assert name in str((target, body, extra)) or name.encode() not in answer.body
    # All examples share the service: delete the remains of this one.
    SERVICE.clear(Operator(Owner.USER), MINE)
    for instance in SERVICE.store.instances():
        if instance.project == "p" and instance.id != MINE:
            SERVICE.store.forget(instance.id)
    SERVICE.jobs.poll()


@hypothesis.given(requests, headers, st.sampled_from([STRANGER, "", "10.1.0.0"]))
def test_untrusted_address_reaches_nothing(request: Any, extra: Any, address: str) -> None:
    method, target, body = request
    answer = Client(APPLICATION, P, address, validated=False)(method, target, body, headers=extra)
    assert answer.status in (400, 401, 404, 405) or method == "OPTIONS"


@hypothesis.given(st.one_of(texts, st.text(min_size=55, max_size=65)))
def test_schema_of_tags_accepts_exactly_valid_names(name: str) -> None:
    # Surrogates are left out of the schema: dialects of patterns express them differently.
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
