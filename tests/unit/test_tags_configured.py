"""The service of tags as the configuration describes it, and its secrets."""

import logging
import os
import pathlib
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from oslo_config import cfg
from tag_databases import upgrade

from steelyard import conf as options
from steelyard import errors
from steelyard.tags import TagStore, configured
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states import Instance, Status

pytestmark = pytest.mark.usefixtures("closed_databases")

CALLER = Caller("p", "u")
SECRET = "hunter2"

Configure = Callable[..., cfg.ConfigOpts]


def written(path: pathlib.Path, *lines: str, mode: int = 0o600) -> str:
    path.write_text("\n".join([f"[{options.TAGS_GROUP}]", *lines]))
    path.chmod(mode)
    return str(path)


def parsed(*arguments: str, files: tuple[str, ...] = (), directory: str = "") -> cfg.ConfigOpts:
    """With these files and this directory by default."""
    conf = cfg.ConfigOpts()
    conf(
        list(arguments),
        project="steelyard",
        default_config_files=list(files),
        default_config_dirs=[directory] if directory else [],
    )
    return conf


@pytest.fixture
def configure(tmp_path: pathlib.Path) -> Configure:
    """Makes a configuration from the lines of a [steelyard_tags] group."""

    def configure(*lines: str, mode: int = 0o600) -> cfg.ConfigOpts:
        path = written(tmp_path / "steelyard.conf", *lines, mode=mode)
        return parsed(files=(path,))

    return configure


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    """A database that is there."""
    url = f"sqlite:///{tmp_path}/tags.db"
    upgrade(TagStore(url))
    return url


@pytest.fixture
def secret(tmp_path: pathlib.Path, url: str) -> str:
    """The same by a URL with a password, of which SQLite takes no notice."""
    assert url
    return f"connection = sqlite:///file:{tmp_path}/tags.db?uri=true&password={SECRET}"


def test_the_service_is_as_it_is_configured(configure: Configure, url: str) -> None:
    conf = configure(
        f"connection = {url}",
        "user_prefix = ours:",
        "system_prefix = theirs:",
        "incompatible = fast, safe",
        "incompatible = red, green, blue",
    )
    service = configured.service(conf)
    assert isinstance(service.backend, MemoryBackend)
    assert list(service.prefixes) == ["ours:", "theirs:"]
    service.create(CALLER, "vm", ["fast", "red"], "s1")
    service.add(Operator(), "s1", "safe")
    for name in ("safe", "green", "blue"):
        with pytest.raises(errors.Conflict, match="does not go together with"):
            service.add(CALLER, "s1", name)
    service.poll()
    tags = {"ours:fast", "ours:red", "theirs:safe"}
    assert service.backend.tags(["vm"]) == {"vm": tags}


def test_the_url_that_is_given_goes_before_the_one_that_is_configured(
    configure: Configure, url: str, tmp_path: pathlib.Path
) -> None:
    conf = configure(f"connection = sqlite:///{tmp_path}/other.db")
    configured.service(conf, url).register(Instance("s1", "vm", "p", "u"))
    assert configured.store(configure(), url).instance("s1").name == "vm"
    with pytest.raises(errors.ServiceError, match="steelyard db upgrade"):
        configured.service(conf).store.instances()


def test_a_backend_in_memory_goes_on_from_what_is_in_the_database(
    configure: Configure, url: str
) -> None:
    """Though each process has a new one, whose jobs are not to be taken for older ones."""
    conf = configure(f"connection = {url}")
    service = configured.service(conf)
    service.create(CALLER, "vm", [], "s1")
    service.poll()
    names = ["red", "blue", "green"]
    for count, name in enumerate(names, 1):
        service = configured.service(conf)
        service.add(CALLER, "s1", name)
        service.poll()
        assert service.tags(CALLER, "s1") == dict.fromkeys(sorted(names[:count]), Status.ACTIVE)
    service = configured.service(conf)
    service.clear(CALLER, "s1")
    service.poll()
    assert configured.service(conf).tags(CALLER, "s1") == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("user_prefix = ours", r"user_prefix and .* in \[steelyard_tags\]: 'ours' is no prefix"),
        ("user_prefix =", r"user_prefix and .* '' is no prefix"),
        ("system_prefix = a/b:", r"system_prefix in .*'a/b:' is no prefix"),
        ("system_prefix = é:", r"system_prefix in .*'é:' is no prefix"),
        ("user_prefix = cyclades:", "the prefix 'cyclades:' begins the prefix"),
        ("user_prefix = cyclades:system:", "the prefix 'cyclades:system:' begins"),
        ("user_prefix = cyclades:system:x:", "the prefix 'cyclades:system:' begins"),
        ("incompatible = fast", r"incompatible in \[steelyard_tags\]: 'fast' names no tags"),
        ("incompatible = fast, fast", "'fast, fast' names no tags that clash"),
        ("incompatible = fast,, safe", "incompatible in .*'' is no tag: it has 0 characters"),
        ("incompatible = fast, a/b", "'a/b' is no tag: it has '/' in it"),
        ("backend = nowhere", "there is no tag backend 'nowhere'; installed are .*memory"),
        ("connection =", "connection in .* is no URL of a database"),
        ("connection = /var/lib/tags.db", "connection in .* is no URL of a database"),
    ],
)
def test_bad_values_are_named(configure: Configure, url: str, line: str, said: str) -> None:
    conf = configure(f"connection = {url}", line)
    with pytest.raises((errors.BadRequest, errors.PluginError), match=said):
        configured.service(conf)


def test_a_database_must_be_named(configure: Configure) -> None:
    with pytest.raises(errors.BadRequest, match=r"set connection in \[steelyard_tags\]"):
        configured.service(configure())


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql+psycopg://u:{SECRET}@h/tags",
        f"postgresql+psycopg://u@h/tags?password={SECRET}",
        f"mysql+pymysql://u@h/tags?passwd={SECRET}",
        f"postgresql+psycopg://u@h/tags?sslpassword={SECRET}",
        "postgresql+psycopg://u:@h/tags",
    ],
)
def test_a_password_on_the_command_line_is_refused(configure: Configure, url: str) -> None:
    with pytest.raises(errors.BadRequest, match="can be read by everybody on this machine") as told:
        configured.service(configure(), url)
    assert SECRET not in str(told.value)


@pytest.mark.parametrize(
    ("mode", "accepted"),
    [(0o600, True), (0o640, True), (0o400, True), (0o660, True)]
    + [(mode, False) for mode in (0o644, 0o604, 0o602, 0o666, 0o777)],
)
@pytest.mark.parametrize("where", ["default", "--config-file", "--config-dir", "default dir"])
def test_a_file_with_a_password_is_not_for_everybody(
    tmp_path: pathlib.Path, secret: str, mode: int, accepted: bool, where: str
) -> None:
    directory = tmp_path / "steelyard.conf.d"
    directory.mkdir()
    path = written(directory / "secret.conf", secret, mode=mode)
    conf = {
        "default": lambda: parsed(files=(path,)),
        "--config-file": lambda: parsed("--config-file", path),
        "--config-dir": lambda: parsed("--config-dir", str(directory)),
        "default dir": lambda: parsed(directory=str(directory)),
    }[where]()
    if accepted:
        assert configured.service(conf).store.instances() == []
        return
    with pytest.raises(
        errors.BadRequest, match=r"secret\.conf has credentials.*chmod o-rw"
    ) as told:
        configured.service(conf)
    assert SECRET not in str(told.value)


def test_only_files_with_the_option_are_looked_at(tmp_path: pathlib.Path, secret: str) -> None:
    """Those whose value does not count in the end, too: it is there to be read."""
    good = written(tmp_path / "good.conf", secret)
    others = written(tmp_path / "others.conf", "backend = memory", mode=0o644)
    spoken = tmp_path / "spoken.conf"
    spoken.write_text("[database]\nconnection = sqlite://\n[other]\nx = [steelyard_tags]\n")
    spoken.chmod(0o644)
    files = [
        argument for path in (good, others, str(spoken)) for argument in ("--config-file", path)
    ]
    assert configured.service(parsed(*files)).store.instances() == []
    for old in (
        written(tmp_path / "old.conf", secret, mode=0o644),
        written(tmp_path / "loud.conf", secret, mode=0o644),
    ):
        path = pathlib.Path(old)
        path.write_text(path.read_text().replace("[steelyard_tags]", "[STEELYARD_TAGS]"))
        with pytest.raises(errors.BadRequest, match=f"{path.name} has credentials"):
            configured.service(parsed("--config-file", old, *files))


def test_what_is_in_every_directory_is_looked_at(tmp_path: pathlib.Path, secret: str) -> None:
    arguments = []
    for name, mode in (("one", 0o644), ("two", 0o600)):
        (tmp_path / name).mkdir()
        written(tmp_path / name / "tags.conf", secret, mode=mode)
        arguments += ["--config-dir", str(tmp_path / name)]
    with pytest.raises(errors.BadRequest, match=r"one/tags\.conf has credentials"):
        configured.service(parsed(*arguments))


def test_without_a_password_everybody_may_read(configure: Configure, url: str) -> None:
    assert configured.service(configure(f"connection = {url}", mode=0o644)).store.instances() == []


@pytest.mark.parametrize("backend", ["memory", "ganeti"])
def test_a_file_with_the_password_of_a_backend_is_not_for_everybody(
    tmp_path: pathlib.Path, url: str, backend: str
) -> None:
    """Whichever backend it is: the password is there to be read."""
    own = written(tmp_path / "own.conf", f"connection = {url}", f"backend = {backend}", mode=0o644)
    path = written(tmp_path / "secret.conf", f"ganeti_password = {SECRET}", mode=0o640)
    if backend == "memory":
        assert configured.service(parsed(files=(own, path))).store.instances() == []
    pathlib.Path(path).chmod(0o644)
    with pytest.raises(
        errors.BadRequest, match=r"secret\.conf has credentials.*chmod o-rw"
    ) as told:
        configured.service(parsed(files=(own, path)))
    assert SECRET not in str(told.value)


def test_what_comes_from_no_file_needs_none(
    secret: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = secret.partition(" = ")[2]
    conf = cfg.ConfigOpts()
    options.register_tags(conf)
    conf.set_override("connection", value, group=options.TAGS_GROUP)
    assert configured.service(conf).store.instances() == []
    monkeypatch.setitem(os.environ, "OS_STEELYARD_TAGS__CONNECTION", value)
    assert configured.service(parsed()).store.instances() == []


@pytest.mark.parametrize(
    "connection",
    [
        f"postgresql//u:{SECRET}@h/tags",
        f"postgresql+psycopg://u:{SECRET}@h:80x/tags",
        f"postgresql+psycopg://u:x@y:{SECRET}@h/tags",
        f"nobodysql://u:{SECRET}@h/tags",
        f"sqlite://u:{SECRET}@h/tags",
        f"u:{SECRET}",
        f"postgresql+psycopg://u:{SECRET}@127.0.0.1:1/tags",
        f"mysql+pymysql://u:{SECRET}@127.0.0.1:1/tags",
        f"mysql+pymysql://u:{SECRET}@127.0.0.1:1/tags?nonsense=1",
    ],
)
def test_no_error_has_the_password_in_it(
    configure: Configure, connection: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    conf = configure(f"connection = {connection}")
    with pytest.raises(errors.SteelyardError) as told:
        configured.service(conf).store.instances()
    assert SECRET not in "".join(traceback.format_exception(told.value))
    assert SECRET not in caplog.text


def test_no_line_of_the_log_has_the_password_in_it(
    configure: Configure, secret: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever has all values and all statements logged."""
    for name in ("", "sqlalchemy", "alembic", "oslo_config"):
        caplog.set_level(logging.DEBUG, name)
    conf = configure(secret)
    service = configured.service(conf)
    conf.log_opt_values(logging.getLogger("test"), logging.DEBUG)
    service.create(CALLER, "vm", ["red"], "s1")
    service.poll()
    assert "steelyard_tags.connection" in caplog.text
    assert "INSERT INTO instance_tags" in caplog.text
    assert SECRET not in caplog.text


def test_statements_are_not_echoed(
    configure: Configure, secret: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.service(configure(secret)).create(CALLER, "vm", ["red"], "s1")
    said: Any = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
