"""The findings about the setup of the tag service."""

import json
import pathlib
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trustme

from steelyard import cli
from steelyard.findings import Check
from steelyard.tags import TagStore
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.states.values import Instance, Kind, Operation, StateChange
from support.repository import DOCS
from support.tags.databases import upgrade
from support.tags.fake_ganeti import CLUSTER, Ganeti, served

pytestmark = pytest.mark.usefixtures("closed_databases")

GUIDE = DOCS / "guides" / "check-the-tag-service.rst"
DOWN = "amqp://u:hunter2@127.0.0.1:1/tags"


@pytest.fixture
def ganeti(tmp_path: pathlib.Path) -> Iterator[Ganeti]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with served(Ganeti(), authority.issue_cert("127.0.0.1")) as server:
        yield server


@pytest.fixture
def store(tmp_path: pathlib.Path) -> TagStore:
    made = TagStore(f"sqlite:///{tmp_path}/tags.db")
    upgrade(made, BackendIdentity("ganeti", CLUSTER))
    return made


class Setup:
    """A configuration without faults, in which tests change options."""

    def __init__(self, folder: pathlib.Path, url: str) -> None:
        self.path = folder / "tags.conf"
        self.options: dict[str, object] = {
            "connection": f"sqlite:///{folder}/tags.db",
            "trusted_proxies": "127.0.0.1",
            "backend": "ganeti",
            "ganeti_url": url,
            "ganeti_user": "steelyard",
            "ganeti_password": "hunter2",
            "ganeti_ca": folder / "ca.pem",
        }
        self.mode = 0o600

    def write(self) -> None:
        lines = [f"{name} = {value}" for name, value in self.options.items() if value is not None]
        self.path.write_text("\n".join(["[steelyard_tags]", *lines, ""]))
        self.path.chmod(self.mode)


@pytest.fixture
def setup(tmp_path: pathlib.Path, ganeti: Ganeti, store: TagStore) -> Setup:
    return Setup(tmp_path, ganeti.url)


@pytest.fixture
def examine(setup: Setup, capsys: Any) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Return a function that changes options, and returns the status and findings by check."""

    def run(**changed: object) -> tuple[int, dict[str, Any]]:
        setup.options |= changed
        setup.write()
        status = cli.main(["--config-file", str(setup.path), "tags", "doctor", "-f", "json"])
        out, err = capsys.readouterr()
        assert "hunter2" not in out + err
        findings = json.loads(out)["findings"]
        return status, {each["check"]: each for each in findings}

    return run


Examine = Callable[..., tuple[int, dict[str, Any]]]


def line_of(setup: Setup, option: str) -> int:
    (line,) = (
        number
        for number, line in enumerate(setup.path.read_text().splitlines(), 1)
        if line.startswith(f"{option} =")
    )
    return line


def test_setup_without_faults_has_no_findings(examine: Examine) -> None:
    assert examine() == (0, {})


def test_text_names_the_number_of_files(setup: Setup, capsys: Any) -> None:
    setup.write()
    assert cli.main(["--config-file", str(setup.path), "tags", "doctor"]) == 0
    assert capsys.readouterr() == ("", "steelyard: nothing found in 1 file\n")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("poll_interval", "soon", "'soon': expected a finite number"),
        ("metrics_listen", "9781", "'9781': expected a host and a port"),
        ("user_prefix", "user", "user"),
        ("incompatible", "a", "a"),
        ("trusted_proxies", "nowhere", "'nowhere' does not appear to be an IPv4"),
        ("transport_url", "rabbit://u:hunter2@h/", "invalid broker URL"),
        ("connection", None, "no database configured"),
        ("connection", "nonsense", "invalid database URL"),
        ("backend", "absent", "no tag backend 'absent'"),
        ("ganeti_url", None, "ganeti_url"),
    ],
)
def test_invalid_option_is_an_error(
    examine: Examine, setup: Setup, option: str, value: str | None, message: str
) -> None:
    status, findings = examine(**{option: value})
    assert status == 1
    finding = findings[Check.INVALID_OPTION]
    assert finding["severity"] == "error"
    assert message in finding["message"]
    if value is not None:
        assert finding["subject"]["name"] == f"[steelyard_tags] {option}"
        assert (finding["file"], finding["line"]) == (str(setup.path), line_of(setup, option))


@pytest.mark.parametrize(
    ("mode", "insecure"), [(0o600, False), (0o640, False), (0o644, True), (0o602, True)]
)
def test_file_with_passwords_that_others_can_read_is_an_error(
    examine: Examine, setup: Setup, mode: int, insecure: bool
) -> None:
    setup.mode = mode
    status, findings = examine()
    assert list(findings) == ([Check.INSECURE_FILE] if insecure else [])
    assert status == int(insecure)
    if insecure:
        finding = findings[Check.INSECURE_FILE]
        assert finding["severity"] == "error"
        assert finding["subject"] == {"kind": "file", "name": str(setup.path), "key": None}
        assert f"chmod o-rw {setup.path}" in finding["remedy"]


def test_file_without_passwords_may_be_readable(examine: Examine, setup: Setup) -> None:
    setup.mode = 0o644
    status, findings = examine(backend="memory", ganeti_password=None)
    assert status == 1
    assert Check.INSECURE_FILE not in findings


@pytest.mark.parametrize("option", ["connection", "transport_url"])
def test_password_in_a_url_counts_as_such(examine: Examine, setup: Setup, option: str) -> None:
    setup.mode = 0o644
    urls = {"connection": "postgresql+psycopg://u:hunter2@127.0.0.1:1/t", "transport_url": DOWN}
    _, findings = examine(backend="memory", ganeti_password=None, **{option: urls[option]})
    assert Check.INSECURE_FILE in findings


def test_unknown_option_is_a_warning(examine: Examine, setup: Setup) -> None:
    status, findings = examine(pol_interval=2)
    finding = findings[Check.UNKNOWN_OPTION]
    assert (status, finding["severity"]) == (1, "warning")
    assert "did you mean 'poll_interval'?" in finding["message"]
    assert finding["line"] == line_of(setup, "pol_interval")


def test_option_without_effect_is_a_warning(examine: Examine) -> None:
    status, findings = examine(exchange="ganeti")
    assert status == 1
    finding = findings[Check.INEFFECTIVE_OPTION]
    assert finding["subject"]["name"] == "[steelyard_tags] exchange"


def test_missing_proxies_are_a_note(examine: Examine) -> None:
    status, findings = examine(trusted_proxies=None)
    assert (status, list(findings)) == (0, [Check.NO_TRUSTED_PROXIES])
    assert findings[Check.NO_TRUSTED_PROXIES]["severity"] == "note"


def test_unusable_database_is_an_error(examine: Examine, tmp_path: pathlib.Path) -> None:
    (tmp_path / "broken.db").write_text("no database\n" * 100)
    status, findings = examine(connection=f"sqlite:///{tmp_path}/broken.db")
    assert (status, list(findings)) == (1, [Check.DATABASE_FAILED])
    assert findings[Check.DATABASE_FAILED]["subject"]["name"] == "database"


def test_outdated_tables_are_an_error(examine: Examine, store: TagStore) -> None:
    store.downgrade("0003")
    status, findings = examine()
    assert (status, list(findings)) == (1, [Check.WRONG_SCHEMA])
    assert "at revision 0003" in findings[Check.WRONG_SCHEMA]["message"]
    assert "steelyard db upgrade --schema tags" in findings[Check.WRONG_SCHEMA]["remedy"]


def test_unreachable_backend_is_an_error(examine: Examine) -> None:
    status, findings = examine(ganeti_url="https://127.0.0.1:1", ganeti_connect_timeout=0.5)
    assert (status, list(findings)) == (1, [Check.BACKEND_FAILED])
    assert "cannot reach Ganeti" in findings[Check.BACKEND_FAILED]["message"]


def test_other_backend_is_an_error(examine: Examine, store: TagStore) -> None:
    store.rename_backend(BackendIdentity("ganeti", "other"))
    status, findings = examine()
    assert (status, list(findings)) == (1, [Check.WRONG_BACKEND])
    message = findings[Check.WRONG_BACKEND]["message"]
    assert "belongs to backend ganeti 'other', but backend ganeti" in message


def test_database_without_a_backend_is_an_error(examine: Examine, tmp_path: pathlib.Path) -> None:
    TagStore(f"sqlite:///{tmp_path}/new.db").upgrade()
    status, findings = examine(connection=f"sqlite:///{tmp_path}/new.db")
    assert (status, list(findings)) == (1, [Check.WRONG_BACKEND])
    assert "records no backend" in findings[Check.WRONG_BACKEND]["message"]


def test_backend_in_memory_is_a_warning(examine: Examine) -> None:
    _, findings = examine(backend="memory")
    assert findings[Check.TRIAL_BACKEND]["severity"] == "warning"


def test_old_operation_is_a_warning(examine: Examine, store: TagStore) -> None:
    store.note_reconciled(time.time())
    old = Operation("o", Kind.ADD, "cyclades:user:", (), time.time() - 4000, 7)
    store.register(Instance("s", "vm", "p", "u"), StateChange(begun=(old,)))
    status, findings = examine()
    assert (status, list(findings)) == (1, [Check.OLD_OPERATION])
    assert findings[Check.OLD_OPERATION]["message"] == (
        "1 pending operation, the oldest for 1 h 6 min"
    )
    assert examine(give_up_after=5000) == (0, {})


def test_missing_reconciliation_is_a_warning(examine: Examine, store: TagStore) -> None:
    store.register(Instance("s", "vm", "p", "u"))
    status, findings = examine()
    assert (status, list(findings)) == (1, [Check.NOT_RECONCILED])
    assert findings[Check.NOT_RECONCILED]["message"].endswith("reconciled all instances yet")
    store.note_reconciled(time.time() - 3 * 86400)
    _, findings = examine()
    assert "for 3 d 0 h" in findings[Check.NOT_RECONCILED]["message"]
    store.note_reconciled(time.time() - 86400)
    assert examine() == (0, {})
    store.note_reconciled(1.0)
    assert examine(reconcile_every=0) == (0, {})


def test_unreachable_broker_is_an_error(examine: Examine) -> None:
    status, findings = examine(transport_url=DOWN)
    assert (status, list(findings)) == (1, [Check.BROKER_FAILED])


def test_doctor_needs_a_file(capsys: Any) -> None:
    assert cli.main(["tags", "doctor"]) == 2
    assert "missing --config-file: name each file" in capsys.readouterr().err


def test_file_that_cannot_be_read_ends_with_2(tmp_path: pathlib.Path, capsys: Any) -> None:
    (tmp_path / "bad.conf").write_text("[steelyard_tags\n")
    assert cli.main(["--config-file", str(tmp_path / "bad.conf"), "tags", "doctor"]) == 2
    assert "correct the line" in capsys.readouterr().err


def test_doctor_changes_nothing(examine: Examine, store: TagStore, tmp_path: pathlib.Path) -> None:
    before = (tmp_path / "tags.db").read_bytes()
    examine()
    assert (tmp_path / "tags.db").read_bytes() == before


def test_guide_lists_all_checks() -> None:
    listed = re.findall(r"^   \* - ``([a-z-]+)``", GUIDE.read_text(), re.MULTILINE)
    members = list(Check)
    own = members[members.index(Check.INSECURE_FILE) :]
    assert sorted(listed) == sorted([Check.INVALID_OPTION, Check.UNKNOWN_OPTION, *own])
