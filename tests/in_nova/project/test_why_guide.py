"""The examples of the guide to ``steelyard why``, in a real Nova with a real Placement."""

import re
import textwrap
from unittest import mock

import pytest

from support.nova import clouds  # before the rest of Nova, which says why

# isort: split
from nova import exception
from nova.api.openstack.api_version_request import APIVersionRequest, max_api_version
from nova.virt import fake

from support.nova.seeded import Seeded
from support.repository import DOCS

GUIDE = DOCS / "guides/find-out-why-a-server-did-not-start.rst"
_ANSWER = re.compile(
    r"^   \$ steelyard --config-file nova\.conf why (\S+) --os-cloud mycloud\n((?:   .*\n|\n)+)",
    re.MULTILINE,
)
# Parts of an answer that differ from run to run.
_VARYING = {
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?": "TIME",
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}": "UUID",
    r"on host 'node-\d'": "on host 'NODE'",
}
# The guide has the answers from Nova 34.
_SHOWS_ALL = max_api_version() > APIVersionRequest("2.100")


def constant(text: str) -> str:
    """Return the text with a constant word for each part that varies.

    An older Nova records other events, and does not show some data, so that part is left out.
    """
    for pattern, word in _VARYING.items():
        text = re.sub(pattern, word, text)
    return text.strip() if _SHOWS_ALL else text.partition("\nevents ")[0].strip()


class TestGuide(Seeded, clouds.SharedCloud):
    hosts = ("node-1", "node-2", "node-3")

    def assert_answer_as_printed(self, server: str) -> None:
        """Assert that the answer about the server of this name is the one in the guide."""
        printed = dict(_ANSWER.findall(GUIDE.read_text()))
        self.booted(name=server)
        _, out, err = self.run_why(server)
        expected = textwrap.dedent(printed.get(server, "no answer in the guide"))
        assert constant(expected) == constant(out + err), out + err

    def test_trait_that_no_host_has(self) -> None:
        self.add_trait("node-1", "CUSTOM_FAST_DISK")
        self._create_trait("CUSTOM_FASTDISK")
        specs = {"trait:CUSTOM_FASTDISK": "required"}
        flavor = self._create_flavor(name="db.large", memory_mb=512, vcpu=1, extra_spec=specs)
        self.wanted["flavorRef"] = flavor
        self.assert_answer_as_printed("db-1")

    def test_zone_without_room(self) -> None:
        self.aggregate("node-3", availability_zone="north")
        self.exhaust("MEMORY_MB", "node-3")
        self.wanted["availability_zone"] = "north"
        self.assert_answer_as_printed("web-1")

    def test_misspelt_extra_spec(self) -> None:
        self.aggregate("node-1", ssd="nvme")
        self.aggregate("node-2", ssd="sata")
        self.set_service("node-2", forced_down=True)
        self.wanted["sdd"] = "nvme"
        self.assert_answer_as_printed("cache-1")

    def test_exhausted_anti_affinity(self) -> None:
        self.wanted["group"] = self.make_group(self.api, "etcd", "anti-affinity")
        for _ in self.hosts:
            assert self.booted()["status"] == "ACTIVE"
        self.assert_answer_as_printed("etcd-4")

    def test_failed_build(self) -> None:
        fault = exception.InstanceFaultRollback(exception.NovaException("no free space on /var"))
        with mock.patch.object(fake.FakeDriver, "spawn", side_effect=fault):
            self.assert_answer_as_printed("web-2")


@pytest.mark.parametrize("server", ["db-1", "web-1", "cache-1", "etcd-4", "web-2"])
def test_guide_has_example(server: str) -> None:
    assert server in dict(_ANSWER.findall(GUIDE.read_text()))
