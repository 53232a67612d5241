import json
import pathlib
from typing import Any

import pytest

from steelyard.cloud import Server
from steelyard.cloud.files.request_file import WantedServers, load
from steelyard.errors import InvalidCloud
from support.scheduler import three_hosts


@pytest.fixture
def requests(tmp_path: pathlib.Path) -> Any:
    """Return a function that loads requests for a cloud with the server 'old-2'."""
    cloud = three_hosts.cloud()
    cloud = cloud.with_servers([Server("u", "old-2", cloud.flavors["small"], "a")])

    def load_text(text: str, name: str = "requests.yaml") -> list[WantedServers]:
        (tmp_path / name).write_text(text)
        return load(tmp_path / name, cloud)

    return load_text


def test_load_reads_requests_with_defaults(requests: Any) -> None:
    text = "- {flavor: small}\n- {flavor: nvme, count: 2, group: apart, name: db}\n"
    expected = [WantedServers("small"), WantedServers("nvme", 2, "apart", "db")]
    assert requests(text) == expected
    content = [{"flavor": "small"}, {"flavor": "nvme", "count": 2, "group": "apart", "name": "db"}]
    assert requests(json.dumps(content), "requests.json") == expected


def test_names_are_numbered_only_for_several_servers() -> None:
    assert WantedServers("small").own_names() == []
    assert WantedServers("small", name="db").own_names() == ["db"]
    assert WantedServers("small", 2, name="db").own_names() == ["db-1", "db-2"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", r"expected a list of at least one request, got \[\]"),
        ("flavor: small", "expected a list of at least one request, got {"),
        ("- small", ':1: request 1: expected a mapping, got "small"'),
        ("- {count: 1}", ":1: request 1: missing key 'flavor'; required: flavor"),
        ("- {flavor: small}\n- {flavor: smal}", ":2: request 2: flavor: no flavor 'smal'; did"),
        ("- {flavor: small, group: x}", ":1: request 1: group: no server group 'x'; avail"),
        ("- {flavor: small, count: 0}", ":1: request 1: count: expected a whole number from"),
        ("- {flavor: small, cuont: 1}", ":1: request 1: cuont: unknown key 'cuont'; did"),
        ("- {flavor: small, name: ''}", ":1: request 1: name: invalid name '': expected"),
        ("- {flavor: small, name: old-2}", ":1: request 1: name: server 'old-2' already exists"),
        ("- {flavor: small, name: old, count: 2}", ":1: request 1: name: server 'old-2' already"),
        (
            "- {flavor: small, name: a-1}\n- {flavor: small, name: a, count: 3}",
            ":2: request 2: name: server 'a-1' already exists in the cloud or in the file; choose",
        ),
        ("- {flavor: small, flavor: small}", ":1: duplicate key 'flavor'"),
    ],
)
def test_load_mistake_is_reported_with_its_place(requests: Any, text: str, said: str) -> None:
    with pytest.raises(InvalidCloud, match=said) as caught:
        requests(text)
    assert str(caught.value.file).endswith("requests.yaml")


def test_load_mistake_has_the_path_of_keys_and_indices(requests: Any) -> None:
    with pytest.raises(InvalidCloud) as caught:
        requests("- {flavor: small}\n- {flavor: smal}")
    assert (caught.value.path, caught.value.where) == (("1", "flavor"), "request 2: flavor")
