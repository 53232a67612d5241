"""The live page over HTTP: selections, errors and headers."""

import gzip
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import falcon.testing
import pytest

from steelyard.cloud import Cloud, Flavor
from steelyard.errors import InvalidCloud
from steelyard.filters import base
from steelyard.page.reloading import WatchedCloud
from steelyard.page.served_cloud import ServedCloud
from steelyard.page.serving import AllowedHosts, make_application
from steelyard.scheduler import FilterScheduler
from support.page.parsed_pages import Page
from support.page.shown_cloud import CLOUD


@pytest.fixture
def cloud(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return the path of a cloud file whose names look like HTML."""
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)
    return path


def client_of(cloud: Any, conf: Any, *names: str) -> falcon.testing.TestClient:
    watched = WatchedCloud(str(cloud), conf)
    application = make_application(
        watched.current, AllowedHosts(*(names or ("127.0.0.1",))), str(cloud)
    )
    return falcon.testing.TestClient(application, headers={"Host": "127.0.0.1:8080"})


@pytest.fixture
def client(cloud: Any, conf: Any) -> falcon.testing.TestClient:
    return client_of(cloud, conf)


def get_page(client: Any, status: int = 200, **params: str) -> Page:
    answer = client.simulate_get("/", params=params)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Page(answer.text)


def test_page_shows_requested_or_first_flavor(client: Any) -> None:
    page = get_page(client)
    assert page.one("h1").text == "small goes to h2"
    assert [(each.attributes["value"], each.text) for each in page.all("option")] == [
        ("small", "small"),
        ("fast", "fast"),
        ("huge", "huge (fits no host)"),
        ("", "none"),
        ("apart", "apart"),
    ]
    page = get_page(client, flavor="fast", group="apart")
    assert page.one("h1").text == "fast goes to h1"
    assert [page.by_id(f"ask-{each}").attributes["value"] for each in ("flavor", "group")] == [
        "fast",
        "apart",
    ]
    assert get_page(client, flavor="fast", group="").one("h1").text == "fast goes to h1"
    assert get_page(client, flavor="huge").one("h1").text == "No host fits huge"


def test_live_page_equals_page_of_explain(
    client: Any, steelyard: Any, cloud: Any, tmp_path: Any
) -> None:
    file = tmp_path / "page.html"
    steelyard("explain", "--cloud", str(cloud), "--flavor", "fast", "--html", str(file))
    live, written = get_page(client, flavor="fast"), Page(file.read_text())
    assert live.one("main").text == written.one("main").text
    assert live.one("p", "source").text == written.one("p", "source").text


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"flavor": "smal"}, "no flavor 'smal'; did you mean 'small'?"),
        ({"flavor": "small", "group": "a"}, "no server group 'a'; available: 'apart'"),
        ({"flavor": "<i>\x00\r\n"}, "no flavor '<i>\\x00\\r\\n'"),
    ],
)
def test_unknown_flavor_or_group_is_404(client: Any, params: Any, said: str) -> None:
    page = get_page(client, 404, **params)
    assert page.one("h1").text == "Not found in this cloud"
    assert page.one("p", "problem").text.startswith(said)
    assert len(page.all("datalist")) == 2


def test_capacity_page_counts_by_aggregate_or_key(client: Any) -> None:
    for params, names in (
        ({}, ["<b>slow</b>", "in no aggregate", "all hosts"]),
        ({"by": "aggregate"}, ["<b>slow</b>", "in no aggregate", "all hosts"]),
        ({"by": "ssd"}, ["<script>alert(1)</script>", "no ssd", "all hosts"]),
    ):
        answer = client.simulate_get("/capacity", params=params)
        assert answer.status_code == 200
        page = Page(answer.text)
        data = json.loads(page.by_id("room-data").text)
        assert data["names"] == names
        assert data["flavors"] == ["small", "fast", "huge"]
        assert [row[0] for row in page.rows("plain")] == ["small", "fast", "huge"]


def test_capacity_page_reports_unknown_key(client: Any) -> None:
    answer = client.simulate_get("/capacity", params={"by": "sdd"})
    assert answer.status_code == 404
    assert Page(answer.text).one("p", "problem").text == (
        "no aggregate has the metadata key 'sdd'; did you mean 'ssd'?"
    )


def test_capacity_page_reports_unreadable_cloud(client: Any, cloud: Any) -> None:
    cloud.write_text(CLOUD.replace("flavors:", "flavours:"))
    answer = client.simulate_get("/capacity")
    assert answer.status_code == 503
    assert "did you mean 'flavors'" in Page(answer.text).one("p", "problem").text


def test_capacity_page_reports_failing_filter(cloud: Any, conf: Any) -> None:
    scheduler = FilterScheduler(Cloud.load(cloud), conf)
    scheduler.filters = {"Failing": Failing()}
    served = ServedCloud(scheduler)
    application = make_application(lambda: served, AllowedHosts("localhost"))
    client = falcon.testing.TestClient(application, headers={"Host": "localhost"})
    answer = client.simulate_get("/capacity")
    assert answer.status_code == 500
    assert Page(answer.text).one("h1").text == "A plugin failed"


@pytest.mark.parametrize("path", ["/", "/capacity", "/whatif", "/none"])
def test_requests_from_other_sites_are_rejected(client: Any, path: str) -> None:
    answer = client.simulate_get(path, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    page = Page(answer.text)
    assert page.one("h1").text == "Request from another site"
    assert "enter its address in the browser" in page.one("p", "problem").text


@pytest.mark.parametrize("site", ["same-origin", "same-site", "none"])
def test_requests_from_the_page_and_the_reader_are_accepted(client: Any, site: str) -> None:
    assert client.simulate_get("/", headers={"Sec-Fetch-Site": site}).status_code == 200


def test_responses_have_security_headers(client: Any) -> None:
    for path in ("/", "/capacity", "/none"):
        headers = client.simulate_get(path).headers
        assert headers["content-security-policy"].startswith(
            "default-src 'none'; style-src 'sha256"
        )
        assert headers["content-security-policy"].endswith("; frame-ancestors 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


def test_page_allows_only_get_and_head(client: Any) -> None:
    head = client.simulate_head("/")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == client.simulate_get("/").headers["content-length"]
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        answer = client.simulate_request(method, "/")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
        assert Page(answer.text).one("p", "problem").text == ("the page supports GET and HEAD only")


def test_unknown_path_is_404(client: Any) -> None:
    for path in ("/favicon.ico", "/x", "/%00%ff", "/../etc/passwd"):
        answer = client.simulate_get(path)
        assert answer.status_code == 404
        assert (
            Page(answer.text).one("p", "problem").text
            == "the pages are at /, /capacity and /whatif"
        )


@pytest.mark.parametrize(
    ("called", "host", "allowed"),
    [
        ("127.0.0.1", "127.0.0.1:8080", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "localhost:9000", True),  # through an SSH tunnel
        ("127.0.0.1", "LOCALHOST", True),
        ("127.0.0.1", "[::1]:8080", True),
        ("127.0.0.1", "evil.example:8080", False),
        ("127.0.0.1", "127.0.0.1.evil.example", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "192.0.2.1", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", "[::1", False),
        ("127.0.0.1", "evil.example@127.0.0.1/x", True),  # browsers never send this
        ("192.0.2.1", "192.0.2.1:80", True),
        ("192.0.2.1", "localhost", False),
        ("2001:db8::1", "[2001:DB8:0::1]:80", True),
        ("desk.example", "desk.example:8080", True),
        ("desk.example", "Desk.Example", True),
        ("desk.example", "evil.example", False),
        ("0.0.0.0", "192.0.2.1:8080", True),
        ("::", "[2001:db8::1]", True),
        ("::", "localhost", True),
        ("0.0.0.0", "evil.example", False),
    ],
)
def test_allowed_hosts_accepts_only_own_names(called: str, host: str, allowed: bool) -> None:
    assert (host in AllowedHosts(called)) is allowed


def test_unknown_host_name_is_421(client: Any) -> None:
    answer = client.simulate_get("/", headers={"Host": "evil.example"})
    assert answer.status_code == 421
    assert Page(answer.text).one("p", "problem").text == (
        "the request is for host 'evil.example', but this server accepts 127.0.0.1; to serve "
        "another name, start it with --host NAME"
    )
    assert Page(answer.text).all("datalist") == []


def test_page_reloads_changed_file(client: Any, cloud: Any) -> None:
    assert get_page(client).one("h1").text == "small goes to h2"
    cloud.write_text(CLOUD.replace("ram_mb: 4096", "ram_mb: 65536"))
    assert get_page(client).one("h1").text == "small goes to h1"
    cloud.write_text(CLOUD.replace("flavors:", "flavours:"))
    for _ in range(2):
        page = get_page(client, 503)
        assert page.one("h1").text == "Cannot read the cloud"
        assert page.one("p", "problem").text == (
            f"{cloud}:6: flavours: unknown key 'flavours'; did you mean 'flavors'?"
        )
    cloud.unlink()
    assert "No such file" in get_page(client, 503).one("p", "problem").text
    cloud.write_text(CLOUD)
    assert get_page(client).one("h1").text == "small goes to h2"


def test_watched_cloud_keeps_content_of_unchanged_file(cloud: Any, conf: Any) -> None:
    watched = WatchedCloud(str(cloud), conf)
    first = watched.current()
    assert watched.current() is first
    cloud.touch()
    assert watched.current() is not first


def test_watched_cloud_raises_error_with_place_for_malformed_file(cloud: Any, conf: Any) -> None:
    watched = WatchedCloud(str(cloud), conf)
    cloud.write_text("hosts:\n  h: {vcpus: x, ram_mb: 1, disk_gb: 1}\n")
    for _ in range(2):
        with pytest.raises(InvalidCloud) as caught:
            watched.current()
        error = caught.value
        assert (error.file, error.line, error.text) == (str(cloud), 2, "x")
        assert error.path == ("hosts", "h", "vcpus")
        assert len(caught.traceback) == 2


def test_watched_cloud_rejects_missing_file(tmp_path: Any, conf: Any) -> None:
    with pytest.raises(InvalidCloud, match="none: No such file"):
        WatchedCloud(str(tmp_path / "none"), conf)


def test_unsupported_policy_is_200(cloud: Any, configured: Any) -> None:
    conf = configured("enabled_filters = CapacityFilter")
    page = get_page(client_of(cloud, conf), flavor="small", group="apart")
    assert page.one("h1").text == "The policy of the server group is not supported"
    assert (
        "the filter 'ServerGroupAntiAffinityFilter' is not enabled" in page.one("p", "problem").text
    )
    assert len(page.all("datalist")) == 2


def test_page_of_cloud_without_flavors_says_so(tmp_path: Any, conf: Any) -> None:
    path = tmp_path / "cloud.json"
    path.write_text(json.dumps({"hosts": {}}))
    page = get_page(client_of(path, conf))
    assert page.one("h1").text == "The cloud has no flavors"
    assert page.one("p", "problem").text == f"add one under 'flavors' in {path}"


class Failing(base.Filter):
    """A filter that fails when it explains a rejection."""

    def judge(self, request: object) -> base.Rejections:
        raise ValueError("<b>bad</b>\x1b[31m\n")

    def passing(self, hosts: Sequence[object], request: object) -> Sequence[bool]:
        return [True] * len(hosts)


def test_failing_filter_is_500(client: Any, cloud: Any, conf: Any) -> None:
    scheduler = FilterScheduler(Cloud.load(cloud), conf)
    scheduler.filters = {"Failing": Failing()}
    application = make_application(lambda: ServedCloud(scheduler), AllowedHosts("localhost"))
    page = get_page(falcon.testing.TestClient(application, headers={"Host": "localhost"}), 500)
    assert page.one("h1").text == "A plugin failed"
    assert page.one("p", "problem").text == (
        "the filter 'Failing' failed: ValueError: <b>bad</b>\\x1b[31m\\n"
    )


def test_unexpected_error_is_logged_and_not_shown(caplog: Any, conf: Any) -> None:
    def fail() -> ServedCloud:
        raise RuntimeError("secret\x1b[31m\nforged line")

    client = falcon.testing.TestClient(
        make_application(fail, AllowedHosts("localhost")), headers={"Host": "localhost"}
    )
    page = get_page(client, 500)
    assert page.one("p", "problem").text == "see the log of the server"
    assert "secret" not in page.one("body").text
    (record,) = caplog.records
    assert "RuntimeError: 'secret\\x1b[31m\\nforged line'" in record.getMessage()
    assert "in fail" in record.getMessage()


def test_page_escapes_unencodable_names(conf: Any) -> None:
    cloud = Cloud({}, flavors={"\ud800": Flavor("\ud800", 1, 1, 1)})
    scheduler = FilterScheduler(cloud, conf)
    application = make_application(lambda: ServedCloud(scheduler), AllowedHosts("localhost"))
    client = falcon.testing.TestClient(application, headers={"Host": "localhost"})
    assert get_page(client).one("h1").text == "No host fits \\ud800"


def test_page_shows_when_the_cloud_file_was_modified(client: Any, cloud: Any) -> None:
    os.utime(cloud, (0, 1_700_000_000.9))
    time = get_page(client).one("time")
    assert (time.attributes["datetime"], time.text) == (
        "2023-11-14T22:13:20Z",
        "2023-11-14 22:13:20 UTC",
    )


def test_page_of_cloud_without_file_shows_no_time(cloud: Any, conf: Any) -> None:
    served = ServedCloud(FilterScheduler(Cloud.load(cloud), conf))
    application = make_application(lambda: served, AllowedHosts("localhost"), "the example")
    client = falcon.testing.TestClient(application, headers={"Host": "localhost"})
    assert get_page(client).all("time") == []


def test_flavor_that_fits_on_trial_only_is_not_marked(cloud: Any, configured: Any) -> None:
    rejecting, trial = (
        client_of(cloud, configured(*lines)) for lines in ((), ("trial_filters = CapacityFilter",))
    )
    (marked,) = [each for each in get_page(rejecting).all("option") if "(fits" in each.text]
    assert marked.attributes == {"value": "huge", "data-remark": "fits no host"}
    assert not [each for each in get_page(trial).all("option") if "(fits" in each.text]


def test_large_responses_are_compressed_for_clients_that_accept_it(client: Any) -> None:
    plain = client.simulate_get("/")
    assert "content-encoding" not in plain.headers
    packed = client.simulate_get("/", headers={"Accept-Encoding": "br, gzip;q=0.5"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content
    assert int(packed.headers["content-length"]) == len(packed.content) < len(plain.content) / 2
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    head = client.simulate_head("/", headers={"Accept-Encoding": "gzip"})
    assert head.content == b""
    for name in ("content-length", "content-encoding", "vary", "content-type"):
        assert head.headers[name] == packed.headers[name]


def test_conditional_request_gets_the_whole_page(client: Any) -> None:
    # The choice of the host may be left to chance, so no answer stays valid.
    answer = client.simulate_get(
        "/", headers={"If-None-Match": "*", "If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"}
    )
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert "etag" not in answer.headers
    assert answer.text.startswith("<!doctype html>")
