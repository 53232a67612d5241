"""Clients of Placement against the HTTP API of consumers, under gunicorn and keystonemiddleware.

The module with the application is that of the guide.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from keystoneauth1 import session, token_endpoint

from steelyard import errors
from steelyard.consumers import ConsumerStore, PlacementConsumers
from support.consumers.in_process_api import CONSUMER, PROVIDER
from support.repository import DOCS
from support.web.api_process import Served, under_gunicorn

# openstacksdk warns about InfluxDB and service types.
pytestmark = pytest.mark.filterwarnings("ignore:.*(InfluxDB|service_type)")

GUIDE = DOCS / "guides" / "serve-consumers.rst"
ADMIN, READER = "a-token-of-an-administrator", "a-token-of-a-reader"
BEHIND_KEYSTONE = f"""
import warnings
warnings.simplefilter("ignore")
from keystonemiddleware import fixture
tokens = fixture.AuthTokenFixture()
tokens.setUp()
for token, role in {{{ADMIN!r}: "admin", {READER!r}: "reader"}}.items():
    tokens.add_token_data(token_id=token, project_id="p", user_id="u", role_list=[role])
from consumers_wsgi import application
"""
BODY = {
    "allocations": {PROVIDER: {"resources": {"VCPU": 2}}},
    "project_id": "p",
    "user_id": "u",
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield a service whose Keystone knows the tokens of an administrator and of a reader."""
    home = tmp_path_factory.mktemp("home")
    with ConsumerStore(f"sqlite:///{home}/consumers.db") as store:
        store.upgrade()
    (home / ".steelyard").mkdir()
    (home / ".steelyard" / "steelyard.conf").write_text(
        f"[steelyard_consumers]\nconnection = sqlite:///{home}/consumers.db\n"
        f"[keystone_authtoken]\nwww_authenticate_uri = http://keystone.invalid\n"
    )
    guide = GUIDE.read_text()
    (block,) = re.findall(r"^   from keystonemiddleware(?:\n|.)+?(?=^\S)", guide, re.MULTILINE)
    (line,) = re.findall(r"^   gunicorn (.+) consumers_wsgi:application$", guide, re.MULTILINE)
    words = line.split()
    (home / "consumers_wsgi.py").write_text(textwrap.dedent(block))
    (home / "behind_keystone.py").write_text(BEHIND_KEYSTONE)
    options = dict(zip(words[::2], words[1::2], strict=True))
    environment = {"HOME": str(home), "PYTHONPATH": str(home)}
    with under_gunicorn("behind_keystone:application", {}, options, **environment) as server:
        yield server


@pytest.fixture(scope="module")
def url(served: Served) -> str:
    return f"http://127.0.0.1:{served.port}"


def placement(url: str, token: str) -> Any:
    """Return the Placement proxy of openstacksdk."""
    import openstack

    auth = token_endpoint.Token(url, token)
    return openstack.connection.Connection(session=session.Session(auth)).placement


def test_openstacksdk_reads_and_writes(url: str) -> None:
    admin = placement(url, ADMIN)
    data = admin.get_endpoint_data()
    assert (data.min_microversion, data.max_microversion) == ((1, 38), (1, 38))
    target = f"/allocations/{CONSUMER}"
    assert admin.put(target, json=BODY, microversion="1.38").status_code == 204
    again = admin.put(target, json=BODY, microversion="1.38")
    assert again.json()["errors"][0]["code"] == "placement.concurrent_update"
    used = {"usages": {"INSTANCE": {"consumer_count": 1, "VCPU": 2}}}
    for token in (ADMIN, READER):
        query = placement(url, token).get("/usages?project_id=p", microversion="latest")
        assert query.json() == used
    assert placement(url, READER).get(target, microversion="1.38").status_code == 403
    assert admin.delete(target, microversion="1.38").status_code == 204


def test_client_of_steelyard_reads_and_writes(url: str) -> None:
    consumers = PlacementConsumers(placement(url, ADMIN))
    consumers.require_types()
    consumers.put_allocations(CONSUMER, BODY)
    with pytest.raises(errors.ConcurrentUpdate):
        consumers.put_allocations(CONSUMER, BODY)
    assert consumers.get_allocations(CONSUMER) == {**BODY, "consumer_generation": 1}
    assert consumers.usages("p", consumer_type="all") == {
        "usages": {"all": {"consumer_count": 1, "VCPU": 2}}
    }
    consumers.delete_allocations(CONSUMER)
    with pytest.raises(errors.NotFound):
        consumers.delete_allocations(CONSUMER)


def openstack_client(url: str, *words: str) -> Any:
    """Return the rows that a command of osc-placement prints."""
    auth = ["--os-auth-type", "admin_token", "--os-token", ADMIN, "--os-endpoint", url]
    program = pathlib.Path(sys.executable).with_name("openstack")
    done = subprocess.run(
        [str(program), *auth, *words, "-f", "json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_osc_placement_reads_and_writes(url: str) -> None:
    at = ["--os-placement-api-version", "1.38"]
    owner = ["--project-id", "osc", "--user-id", "u", "--consumer-type", "MIGRATION"]
    taken = ["--allocation", f"rp={PROVIDER},VCPU=3"]
    words = ["resource", "provider", "allocation", "set", *taken, *owner, CONSUMER]
    (row,) = openstack_client(url, *at, *words)
    assert (row["resources"], row["consumer_type"]) == ({"VCPU": 3}, "MIGRATION")
    shown = {"resource_class": "MIGRATION", "usage": {"consumer_count": 1, "VCPU": 3}}
    assert openstack_client(url, *at, "resource", "usage", "show", "osc") == [shown]
    # Without a microversion, the client negotiates one.
    assert openstack_client(url, "resource", "usage", "show", "osc") == [shown]


def test_public_paths_need_no_token(served: Served) -> None:
    ask = served.connect()
    assert ask("GET", "/")[1]["versions"][0]["max_version"] == "1.38"
    assert ask("GET", "/health") == (200, {"healthy": True, "checks": {"database": "ok"}})
    assert ask("GET", "/usages?project_id=p")[0] == 401
