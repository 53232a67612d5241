"""Servers found by name, and requests that options describe."""

from collections.abc import Iterator

import pytest

from steelyard.analysis.why.facts import Facts, GivenRequest
from steelyard.cloud.wanted import Source
from steelyard.errors import BadRequest, NotFound
from steelyard.live.why.looking import look
from support.clients import canned_services
from support.clients.canned_cloud import FLAVOR, GROUP, HYPERVISORS, OTHER, SERVER, refused
from support.clients.canned_services import Server
from support.live import canned_look
from support.live.canned_look import ASKED, BODIES, IMAGE, LOST, RECORD, clients, encoded

NAMED = "/servers/detail?name=%5E{}%24&all_tenants=1"
FAILED = "/servers/detail?status=ERROR&limit=500&all_tenants=1"
TWIN = LOST.replace("1", "2")
WHOLE = GivenRequest(
    flavor="small",
    image="debian",
    availability_zone="north",
    host="node1",
    group="web",
    project="shop",
)


@pytest.fixture
def server() -> Iterator[Server]:
    answers = canned_look.answers()
    answers["/images"] = encoded({"images": [BODIES[canned_look.OF_IMAGE]]})
    with canned_services.answering(answers) as made:
        yield made


def looked(server: Server, name: str | None, options: GivenRequest | None = None) -> Facts:
    return look(clients(server.url), name, options or GivenRequest(), lambda items, *_: items)


def list_servers(server: Server, query: str, *names: tuple[str, str]) -> None:
    """Answer the query with servers of these UUIDs and names, on one page."""
    found = [RECORD | {"id": uuid, "name": name} for uuid, name in names]
    server.answers[query] = encoded({"servers": found})


def test_server_is_found_by_its_exact_name(server: Server) -> None:
    list_servers(server, NAMED.format("lost"), (TWIN, "LOST"), (LOST, "lost"))
    server.answers[f"/servers/detail?name=%5Elost%24&all_tenants=1&marker={LOST}"] = encoded(
        {"servers": []}
    )
    record = looked(server, "lost").record
    assert record is not None
    assert record.uuid == LOST


def test_several_servers_of_one_name_are_listed(server: Server) -> None:
    list_servers(server, NAMED.format("lost"), (TWIN, "lost"), (LOST, "lost"))
    with pytest.raises(BadRequest) as raised:
        looked(server, "lost")
    assert str(raised.value) == (
        f"2 servers are named 'lost': {TWIN} (ERROR in project shop), {LOST} (ERROR in project "
        f"shop); name one by its UUID"
    )


def test_unknown_name_suggests_servers_in_error(server: Server) -> None:
    list_servers(server, FAILED, (LOST, "web-1"))
    with pytest.raises(NotFound, match=r"^no server 'web1' .* show; did you mean 'web-1'\?$"):
        looked(server, "web1")
    server.answers[FAILED] = refused(500)
    with pytest.raises(NotFound, match=r"^no server 'web1' that these credentials show$"):
        looked(server, "web1")


def test_servers_of_own_project_are_searched_without_admin_rights(server: Server) -> None:
    server.answers[NAMED.format("lost")] = refused(403)
    list_servers(server, "/servers/detail?name=%5Elost%24", (LOST, "lost"))
    record = looked(server, "lost").record
    assert record is not None
    assert record.uuid == LOST


def test_servers_of_one_request_count_while_they_are_not_placed(server: Server) -> None:
    others = [
        RECORD | {"id": LOST},
        RECORD | {"id": TWIN, "status": "BUILD"},
        RECORD | {"id": OTHER, "status": "ACTIVE"},
        RECORD | {"id": SERVER, "OS-EXT-SRV-ATTR:reservation_id": "r-10"},
    ]
    query = "/servers/detail?reservation_id=r-1&all_tenants=1"
    server.answers[query] = encoded({"servers": others})
    facts = looked(server, LOST)
    assert facts.wanted.count == 2
    assert facts.wanted.sources["count"] is Source.RECORD


def test_options_describe_a_request(server: Server) -> None:
    facts = looked(server, None, WHOLE)
    wanted = facts.wanted
    assert facts.record is None
    assert (wanted.flavor.name, wanted.flavor.memory_mb) == ("small", FLAVOR["ram"])
    assert wanted.image_properties == {"hw_vif_model": "e1000", "trait:CUSTOM_X": "required"}
    assert (wanted.disk_format, wanted.availability_zone) == ("qcow2", "north")
    assert (wanted.host, wanted.project, wanted.count) == ("node1", "shop", 1)
    assert wanted.group is not None
    assert wanted.group.uuid == GROUP
    assert wanted.group.members == {SERVER}
    assert facts.server_hosts == {SERVER: "node1"}
    observed = ("flavor", "image_properties", "image traits", "disk_format", "group")
    assert wanted.sources == {
        **dict.fromkeys(observed, Source.NOW),
        **dict.fromkeys(("project", "availability_zone", "host"), Source.OPTION),
    }
    assert list(facts.not_known) == []


def test_flavor_alone_describes_a_request(server: Server) -> None:
    facts = looked(server, None, GivenRequest(flavor="1"))
    assert facts.wanted.flavor.name == "small"
    assert facts.wanted.sources == {"flavor": Source.NOW}
    assert list(facts.not_known) == ["project of the request: supply it with --project"]


def test_options_name_image_and_group_by_uuid(server: Server) -> None:
    by_uuid = looked(server, None, GivenRequest(flavor="small", image=IMAGE, group=GROUP))
    by_name = looked(server, None, GivenRequest(flavor="small", image="debian", group="web"))
    assert by_uuid.wanted == by_name.wanted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (GivenRequest(flavor="smal"), r"^no flavor 'smal'; did you mean 'small'\?$"),
        (
            GivenRequest(flavor="small", image="debain"),
            r"^no image 'debain'; did you mean 'debian'\?$",
        ),
        (GivenRequest(flavor="small", image=OTHER), f"^no image '{OTHER}' that these"),
        (
            GivenRequest(flavor="small", group="wbe"),
            r"^no server group 'wbe'; did you mean 'web'\?$",
        ),
        (GivenRequest(flavor="small", group=OTHER), f"^no server group '{OTHER}' that these"),
        (GivenRequest(flavor="small", host="nod1"), r"^no host 'nod1'; did you mean 'node1'\?$"),
        (
            GivenRequest(flavor="small", availability_zone="nroth"),
            r"^no availability zone 'nroth'; did you mean 'north'\?$",
        ),
    ],
)
def test_option_that_names_nothing_is_not_found(
    server: Server, options: GivenRequest, message: str
) -> None:
    with pytest.raises(NotFound, match=message):
        looked(server, None, options)


def test_option_that_names_several_things_is_ambiguous(server: Server) -> None:
    image = BODIES[canned_look.OF_IMAGE]
    server.answers["/images"] = encoded({"images": [image, image | {"id": OTHER}]})
    with pytest.raises(BadRequest, match=f"2 images are named 'debian': {IMAGE}, {OTHER}; name"):
        looked(server, None, GivenRequest(flavor="small", image="debian"))
    (group,) = BODIES["/os-server-groups"]["server_groups"]
    server.answers["/os-server-groups?all_projects=True"] = encoded(
        {"server_groups": [group, group | {"id": OTHER}]}
    )
    server.answers["/os-server-groups?all_projects=True&offset=2"] = encoded({"server_groups": []})
    with pytest.raises(BadRequest, match=f"{GROUP} .anti-affinity., {OTHER} .anti-affinity.; name"):
        looked(server, None, GivenRequest(flavor="small", group="web"))


def test_request_without_server_and_flavor_is_a_bad_request(server: Server) -> None:
    with pytest.raises(BadRequest, match="name a server, or a flavor with --flavor"):
        looked(server, None, GivenRequest(image="debian"))
    assert server.asked == []


def test_option_that_cannot_be_checked_is_used(server: Server) -> None:
    for path in (HYPERVISORS, "/os-availability-zone", "/images", "/os-server-groups"):
        server.answers[path] = refused(403)
    facts = looked(server, None, WHOLE)
    assert (facts.wanted.host, facts.wanted.availability_zone) == ("node1", "north")
    assert facts.wanted.group is None
    assert facts.hosts is None
    assert [message.partition(": ")[0] for message in facts.not_known] == [
        "hosts",
        "availability zones",
        "image 'debian'",
        "server group 'web'",
    ]


def test_group_with_unknown_policy_is_not_known(server: Server) -> None:
    group = BODIES[canned_look.OF_GROUP]["server_group"]
    server.answers[canned_look.OF_GROUP] = encoded({"server_group": group | {"policy": "near"}})
    facts = looked(server, LOST)
    assert facts.wanted.group is None
    assert facts.not_known[0].startswith("server group 'web': unknown policy 'near'")


def test_options_replace_the_record_of_a_server(server: Server) -> None:
    server.answers[ASKED] = encoded({"server": RECORD | {"image": ""}})
    server.answers["/flavors/detail?is_public=None"] = encoded(
        {"flavors": [{"id": "2", "name": "large", **FLAVOR, "OS-FLV-EXT-DATA:ephemeral": 3}]}
    )
    options = GivenRequest(flavor="large", image="debian", availability_zone="north", host="node1")
    facts = looked(server, LOST, options)
    wanted = facts.wanted
    assert (wanted.flavor.name, wanted.flavor.root_gb) == ("large", 3)
    assert wanted.image_properties["trait:CUSTOM_X"] == "required"
    assert len(facts.not_known) == 2
    assert {wanted.sources[field] for field in ("flavor", "image_properties")} == {Source.NOW}
    assert {wanted.sources[field] for field in ("availability_zone", "host")} == {Source.OPTION}


def test_flavor_without_extra_specs_names_the_policy(server: Server) -> None:
    bare = {name: value for name, value in FLAVOR.items() if name != "extra_specs"}
    server.answers["/flavors/detail?is_public=None"] = encoded(
        {"flavors": [{"id": "1", "name": "small", **bare}]}
    )
    (message, _) = looked(server, None, GivenRequest(flavor="small")).not_known
    assert message.endswith("needs the policy rule os_compute_api:os-flavor-extra-specs:index")


@pytest.mark.parametrize("name", [None, LOST])
def test_request_from_volume_has_no_root_disk(server: Server, name: str | None) -> None:
    of_image = looked(server, name, GivenRequest(flavor="small")).wanted
    of_volume = looked(server, name, GivenRequest(flavor="small", boot_from_volume=True)).wanted
    assert (of_image.from_volume, of_volume.from_volume) == (False, True)
    assert of_image.flavor.root_gb - of_volume.flavor.root_gb == FLAVOR["disk"]
    assert of_volume.sources["from_volume"] is Source.OPTION


def test_request_from_volume_needs_a_flavor(server: Server) -> None:
    with pytest.raises(BadRequest, match="needs --flavor: Nova shows whether"):
        looked(server, LOST, GivenRequest(boot_from_volume=True))
