"""Fixtures: the backend ganeti over a server that answers like Ganeti."""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import trustme

from steelyard.tags.backends import rapi
from steelyard.tags.backends.ganeti import GanetiBackend
from support.tags.fake_ganeti import SECRET, Ganeti, MakeBackend, configuration, served


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def certificate(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("127.0.0.1")


@pytest.fixture
def ganeti(certificate: trustme.LeafCert) -> Iterator[Ganeti]:
    with served(Ganeti(), certificate) as server:
        yield server


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: pathlib.Path) -> str:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return str(tmp_path / "ca.pem")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the pauses between two attempts."""
    monkeypatch.setattr(rapi, "_PAUSES", (0.01, 0.02))


@pytest.fixture
def make(ca: str) -> MakeBackend:
    """Return a function that creates the backend with short time limits."""

    def make(url: str, **changed: Any) -> GanetiBackend:
        values = {
            "ganeti_url": url,
            "ganeti_user": "steelyard",
            "ganeti_password": SECRET,
            "ganeti_ca": ca,
            "ganeti_timeout": 1.0,
            "ganeti_connect_timeout": 1.0,
            **changed,
        }
        return GanetiBackend(configuration(values))

    return make


@pytest.fixture
def backend(ganeti: Ganeti, make: MakeBackend) -> GanetiBackend:
    return make(ganeti.url)
