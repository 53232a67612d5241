"""The configured tag service, and the protection of its passwords."""

import logging
import os
import pathlib
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors, plugins
from steelyard.conf import InvalidOption
from steelyard.tags import TagStore, configured
from steelyard.tags.backends.base import TagBackend
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states.values import Instance, Status
from support.tags.databases import upgrade

pytestmark = pytest.mark.usefixtures("closed_databases")

CALLER = Caller("p", "u")
SECRET = "hunter2"

Configure = Callable[..., cfg.ConfigOpts]


def written(path: pathlib.Path, *lines: str, mode: int = 0o600) -> str:
    path.write_text("\n".join([f"[{options.TAGS_GROUP}]", *lines]))
    path.chmod(mode)
    return str(path)


def parsed(*arguments: str, files: tuple[str, ...] = (), directory: str = "") -> cfg.ConfigOpts:
    """Return a configuration with these default files and this default directory."""
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
    """Return a function that parses lines of the group [steelyard_tags]."""

    def configure(*lines: str, mode: int = 0o600) -> cfg.ConfigOpts:
        path = written(tmp_path / "steelyard.conf", *lines, mode=mode)
        return parsed(files=(path,))

    return configure


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    """Return the URL of an upgraded database."""
    url = f"sqlite:///{tmp_path}/tags.db"
    upgrade(TagStore(url))
    return url


@pytest.fixture
def secret(tmp_path: pathlib.Path, url: str) -> str:
    """Return the option for that database with a password in the URL, which SQLite ignores."""
    assert url
    return f"connection = sqlite:///file:{tmp_path}/tags.db?uri=true&password={SECRET}"


def test_service_has_configured_prefixes_backend_and_incompatible_tags(
    configure: Configure, url: str
) -> None:
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
        with pytest.raises(errors.Conflict, match="incompatible tag"):
            service.add(CALLER, "s1", name)
    service.jobs.poll()
    tags = {"ours:fast", "ours:red", "theirs:safe"}
    assert service.backend.tags(["vm"]) == {"vm": tags}


class Lasting(MemoryBackend):
    """A backend outside the process."""

    in_process = False


class Passing(Lasting):
    """A third-party backend within the process."""

    in_process = True


@pytest.mark.parametrize(("kind", "adopted"), [(Lasting, {}), (Passing, {"vm": frozenset()})])
def test_service_gives_instances_to_backends_in_the_process(
    configure: Configure,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[TagBackend],
    adopted: dict[str, frozenset[str]],
) -> None:
    TagStore(url).register(Instance("s1", "vm", "p", "u"))
    monkeypatch.setattr(plugins, "load", lambda *_: {"memory": kind()})
    assert configured.service(configure(f"connection = {url}")).backend.tags(["vm"]) == adopted


def test_given_url_overrides_the_configured_one(
    configure: Configure, url: str, tmp_path: pathlib.Path
) -> None:
    conf = configure(f"connection = sqlite:///{tmp_path}/other.db")
    service = configured.service(conf, url)
    assert isinstance(service.backend, MemoryBackend)
    service.backend.adopt({"vm": []})
    service.register(Instance("s1", "vm", "p", "u"))
    assert configured.store(configure(), url).instance("s1").name == "vm"
    with pytest.raises(errors.ServiceError, match="steelyard db upgrade"):
        configured.service(conf).store.instances()


def test_new_backend_in_memory_continues_from_the_database(configure: Configure, url: str) -> None:
    # Job numbers must rise, or the new jobs would look older than the recorded ones.
    conf = configure(f"connection = {url}")
    service = configured.service(conf)
    service.create(CALLER, "vm", [], "s1")
    service.jobs.poll()
    names = ["red", "blue", "green"]
    for count, name in enumerate(names, 1):
        service = configured.service(conf)
        service.add(CALLER, "s1", name)
        service.jobs.poll()
        assert service.tags(CALLER, "s1") == dict.fromkeys(sorted(names[:count]), Status.ACTIVE)
    service = configured.service(conf)
    service.clear(CALLER, "s1")
    service.jobs.poll()
    assert configured.service(conf).tags(CALLER, "s1") == {}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "user_prefix = ours",
            r"user_prefix and .* in \[steelyard_tags\]: invalid tag prefix 'ours'",
        ),
        ("user_prefix =", r"user_prefix and .* invalid tag prefix ''"),
        ("system_prefix = a/b:", r"system_prefix in .*invalid tag prefix 'a/b:'"),
        ("system_prefix = é:", r"system_prefix in .*invalid tag prefix 'é:'"),
        ("user_prefix = cyclades:", "ambiguous tag prefixes 'cyclades:' and"),
        ("user_prefix = cyclades:system:", "ambiguous tag prefixes 'cyclades:system:' and"),
        ("user_prefix = cyclades:system:x:", "ambiguous tag prefixes 'cyclades:system:' and"),
        (
            "incompatible = fast",
            r"incompatible in \[steelyard_tags\]: invalid group of incompatible tags 'fast'",
        ),
        ("incompatible = fast, fast", "incompatible tags 'fast, fast': expected two or more"),
        ("incompatible = fast,, safe", "incompatible in .*invalid tag '': it has 0 characters"),
        ("incompatible = fast, a/b", "invalid tag 'a/b': it contains '/'"),
        ("backend = nowhere", "no tag backend 'nowhere'; installed: .*memory"),
        ("connection =", "invalid database URL .*connection of"),
        ("connection = /var/lib/tags.db", "invalid database URL .*connection of"),
    ],
)
def test_invalid_values_are_rejected_with_the_option(
    configure: Configure, url: str, line: str, message: str
) -> None:
    conf = configure(f"connection = {url}", line)
    with pytest.raises((errors.BadRequest, errors.PluginError), match=message):
        configured.service(conf)


def test_missing_connection_is_rejected(configure: Configure) -> None:
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
def test_password_on_the_command_line_is_rejected(configure: Configure, url: str) -> None:
    with pytest.raises(
        errors.BadRequest, match="cannot use a password on the command line"
    ) as caught:
        configured.service(configure(), url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("mode", "accepted"),
    [(0o600, True), (0o640, True), (0o400, True), (0o660, True)]
    + [(mode, False) for mode in (0o644, 0o604, 0o602, 0o666, 0o777)],
)
@pytest.mark.parametrize("where", ["default", "--config-file", "--config-dir", "default dir"])
def test_file_with_database_password_must_not_be_open_to_all_users(
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
        errors.BadRequest, match=r"insecure configuration file '.*secret\.conf': .*chmod o-rw"
    ) as caught:
        configured.service(conf)
    assert SECRET not in str(caught.value)


def test_permissions_are_checked_only_for_files_with_the_option(
    tmp_path: pathlib.Path, secret: str
) -> None:
    # Files whose value is overridden are checked, too: the password in them can be read.
    good = written(tmp_path / "good.conf", secret)
    others = written(tmp_path / "others.conf", "backend = memory", mode=0o644)
    mentioned = tmp_path / "mentioned.conf"
    mentioned.write_text("[database]\nconnection = sqlite://\n[other]\nx = [steelyard_tags]\n")
    mentioned.chmod(0o644)
    files = [
        argument for path in (good, others, str(mentioned)) for argument in ("--config-file", path)
    ]
    assert configured.service(parsed(*files)).store.instances() == []
    for old in (
        written(tmp_path / "old.conf", secret, mode=0o644),
        written(tmp_path / "upper.conf", secret, mode=0o644),
    ):
        path = pathlib.Path(old)
        path.write_text(path.read_text().replace("[steelyard_tags]", "[STEELYARD_TAGS]"))
        with pytest.raises(
            errors.BadRequest, match=rf"insecure configuration file '.*{path.name}'"
        ):
            configured.service(parsed("--config-file", old, *files))


def test_permissions_are_checked_in_every_directory(tmp_path: pathlib.Path, secret: str) -> None:
    arguments = []
    for name, mode in (("one", 0o644), ("two", 0o600)):
        (tmp_path / name).mkdir()
        written(tmp_path / name / "tags.conf", secret, mode=mode)
        arguments += ["--config-dir", str(tmp_path / name)]
    with pytest.raises(errors.BadRequest, match=r"insecure configuration file '.*one/tags\.conf'"):
        configured.service(parsed(*arguments))


def test_file_without_password_may_be_open_to_all_users(configure: Configure, url: str) -> None:
    assert configured.service(configure(f"connection = {url}", mode=0o644)).store.instances() == []


@pytest.mark.parametrize("backend", ["memory", "ganeti"])
def test_file_with_backend_password_must_not_be_open_to_all_users(
    tmp_path: pathlib.Path, url: str, backend: str
) -> None:
    # This holds for other backends, too: the password in the file can be read.
    own = written(tmp_path / "own.conf", f"connection = {url}", f"backend = {backend}", mode=0o644)
    path = written(tmp_path / "secret.conf", f"ganeti_password = {SECRET}", mode=0o640)
    if backend == "memory":
        assert configured.service(parsed(files=(own, path))).store.instances() == []
    pathlib.Path(path).chmod(0o644)
    with pytest.raises(
        errors.BadRequest, match=r"insecure configuration file '.*secret\.conf': .*chmod o-rw"
    ) as caught:
        configured.service(parsed(files=(own, path)))
    assert SECRET not in str(caught.value)


def test_password_from_override_or_environment_needs_no_file(
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
def test_errors_do_not_contain_the_password(
    configure: Configure, connection: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    conf = configure(f"connection = {connection}")
    with pytest.raises(errors.SteelyardError) as caught:
        configured.service(conf).store.instances()
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in caplog.text


def test_log_does_not_contain_the_password(
    configure: Configure, secret: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("", "sqlalchemy", "alembic", "oslo_config"):
        caplog.set_level(logging.DEBUG, name)
    conf = configure(secret)
    service = configured.service(conf)
    conf.log_opt_values(logging.getLogger("test"), logging.DEBUG)
    service.create(CALLER, "vm", ["red"], "s1")
    service.jobs.poll()
    assert "steelyard_tags.connection" in caplog.text
    assert "INSERT INTO instance_tags" in caplog.text
    assert SECRET not in caplog.text


def test_statements_are_not_echoed(
    configure: Configure, secret: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configured.service(configure(secret)).create(CALLER, "vm", ["red"], "s1")
    captured: Any = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_dollar_in_backend_name_is_explained(configure: Configure) -> None:
    with pytest.raises(InvalidOption, match=r"write [$][$] for a literal [$]"):
        configured.names_backend(configure("backend = $x"))
