"""The fields of servers that say how they were requested."""

import io

import pytest

from steelyard.cloud import Server, model
from steelyard.errors import InvalidCloud

CLOUD = """\
hosts: {{h: {{vcpus: 1, ram_mb: 1, disk_gb: 1}}}}
flavors: {{f: {{vcpus: 1, ram_mb: 1, disk_gb: 1}}}}
servers:
  s: {{host: h, flavor: f, {}}}
"""


def loaded(fields: str) -> Server:
    return model.read(io.StringIO(CLOUD.format(fields)), "c.yaml").server("s")


def test_load_reads_the_owner_and_the_request() -> None:
    server = loaded("project: p, user: u, availability_zone: a, image_properties: {hw_a: 1}")
    assert (server.project, server.user, server.availability_zone) == ("p", "u", "a")
    assert server.image_properties == {"hw_a": "1"}


def test_load_reads_a_scheduler_hint_as_text_or_list() -> None:
    server = loaded("scheduler_hints: {group: g, same_host: [a, b], none: []}")
    assert server.scheduler_hints == {"group": ("g",), "same_host": ("a", "b"), "none": ()}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("projects: p", "projects: unknown key 'projects'; did you mean 'project'?"),
        ("image_properties: [a]", 'image_properties: expected a mapping, got ["a"]'),
        ("scheduler_hints: {a: {b: c}}", 'scheduler_hints.a: expected text, got {"b": "c"}'),
    ],
)
def test_load_names_the_place_of_a_mistake(fields: str, message: str) -> None:
    with pytest.raises(InvalidCloud) as caught:
        loaded(fields)
    assert f"c.yaml:4: servers.s.{message}" in str(caught.value)
