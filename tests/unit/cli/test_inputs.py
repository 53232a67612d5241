"""Files, databases, services and names that commands cannot use."""

import pathlib
from collections.abc import Callable

import pytest

from support.cli.commands import COMMANDS, options_of, parser_of
from support.cli.in_process import Run

# openstacksdk warns about InfluxDB and service types.
pytestmark = pytest.mark.filterwarnings("ignore:.*(InfluxDB|service_type)")

Refused = Callable[..., str]

# Nothing listens on this port.
_CLOSED = "127.0.0.1:9"
_CLOUDS = f"""\
clouds:
  dead:
    auth:
      auth_url: http://{_CLOSED}/v3
      username: u
      password: p
      project_name: p
      user_domain_name: d
      project_domain_name: d
"""
# The values of required options; x for others.
_VALUES = {"--schema": "consumers", "--policy": "affinity", "--type": "INSTANCE"}
# Further arguments that some commands check before the value of an option.
_MORE = {
    ("consumer types", "--os-cloud"): ["--project", "p"],
    ("explain", "--cloud"): ["--flavor", "x"],
    ("query", "--cloud"): ["--flavor", "x"],
    ("query", "--os-cloud"): ["--resources", "VCPU:1"],
    ("schedule", "--cloud"): ["--flavor", "x"],
    ("server evacuate", "--cloud"): ["--host", "x"],
}
# These read the cloud file first; the functional tests of recording have one.
_RECORDING = {"schedule", "server move", "server evacuate"}


def taking(option: str) -> list[str]:
    return [
        name
        for name in COMMANDS
        if any(option in action.option_strings for action in options_of(name))
    ]


def arguments(name: str, option: str, value: str) -> list[str]:
    """Return the command with the option and all required arguments."""
    required: list[str] = []
    for action in parser_of(name)._actions:
        if action.required and action.nargs != "*" and option not in action.option_strings:
            options = action.option_strings[-1:]
            required += [*options, _VALUES.get("".join(options), "x")]
    return [*name.split(), *required, option, value, *_MORE.get((name, option), [])]


@pytest.fixture
def refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Refused:
    """Return a function that runs a failing command and returns its one line of error."""
    (tmp_path / "bad.yaml").write_text("hosts: [\n")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe")
    (tmp_path / "bad.conf").write_text("[steelyard]\nnonsense\n")
    (tmp_path / "clouds.yaml").write_text(_CLOUDS)
    # openstacksdk looks for the file in the folder where it was imported.
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))

    def refuse(*argv: str) -> str:
        status, out, err = run(*argv)
        assert (status, out) == (2, ""), err
        assert err.startswith("steelyard: ")
        assert err.count("\n") == 1
        return err

    return refuse


def test_options_of_every_kind_are_found() -> None:
    assert {"explain", "group list", "server move"} <= set(taking("--cloud"))
    assert {"usage", "db upgrade", "tags list"} <= set(taking("--url"))
    assert {"usage", "cloud import", "tags list"} <= set(taking("--os-cloud"))


@pytest.mark.parametrize("name", taking("--cloud"))
def test_unreadable_cloud_file_is_reported(refused: Refused, name: str) -> None:
    for file, said in (
        ("missing.yaml", "missing.yaml: No such file or directory"),
        ("bad.yaml", "bad.yaml:2: invalid YAML"),
        ("binary.yaml", "binary.yaml: invalid UTF-8"),
    ):
        assert said in refused(*arguments(name, "--cloud", file))


@pytest.mark.parametrize("name", taking("--url"))
def test_unusable_database_is_an_error(refused: Refused, name: str) -> None:
    for url in ("nonsense", "sqlite:///missing/file.db", f"postgresql+psycopg://{_CLOSED}/x"):
        assert refused(*arguments(name, "--url", url))


@pytest.mark.parametrize("name", sorted({*taking("--os-cloud")} - _RECORDING))
def test_mistyped_os_cloud_gets_a_suggestion(refused: Refused, name: str) -> None:
    assert refused(*arguments(name, "--os-cloud", "deda")) == (
        "steelyard: --os-cloud deda: clouds.yaml has no cloud 'deda'; did you mean 'dead'?\n"
    )


@pytest.mark.parametrize(
    ("name", "option"),
    [
        (name, action.option_strings[-1])
        for name in COMMANDS
        for action in options_of(name)
        if action.metavar == "FILE"
    ],
)
def test_empty_file_name_is_rejected(run: Run, name: str, option: str) -> None:
    status, _, err = run(*arguments(name, option, ""))
    assert status == 2
    assert f"argument {option}: expected the name of a file, got ''\n" in err


@pytest.mark.parametrize("option", ["--config-file", "--log-file"])
def test_empty_file_name_of_a_common_option_is_rejected(run: Run, option: str) -> None:
    status, _, err = run(option, "", "plugins")
    assert status == 2
    assert f"argument {option}: expected the name of a file, got ''\n" in err


# The self-test reports each step that fails, and exits with status 1.
@pytest.mark.parametrize("name", sorted({*taking("--os-cloud")} - _RECORDING - {"tags selftest"}))
def test_unreachable_os_cloud_is_an_error(refused: Refused, name: str) -> None:
    said = refused(*arguments(name, "--os-cloud", "dead"))
    assert f"Unable to establish connection to http://{_CLOSED}/" in said


@pytest.mark.parametrize("name", sorted({*taking("--endpoint")} - {"tags selftest"}))
def test_unreachable_endpoint_is_an_error(refused: Refused, name: str) -> None:
    given = arguments(name, "--endpoint", f"http://{_CLOSED}")
    said = refused(*given, "--project", "p", "--user", "u")
    assert f"Unable to establish connection to http://{_CLOSED}/" in said


@pytest.mark.parametrize("argv", [["plugins"], ["doctor"], ["explain", "--example"]])
def test_unreadable_configuration_file_is_reported(refused: Refused, argv: list[str]) -> None:
    said = refused("--config-file", "missing.conf", *argv)
    assert "--config-file: no such file: " in said
    assert said.endswith("/missing.conf\n")
    assert "bad.conf:2, No ':' or '=' found" in refused("--config-file", "bad.conf", *argv)
    assert refused("--config-file", ".", *argv).endswith(": Is a directory\n")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ("capacity --example --flavor web.smal", "no flavor 'web.smal'; did you mean 'web.small'?"),
        ("compare --example --flavor web.smal", "no flavor 'web.smal'; did you mean 'web.small'?"),
        ("explain --example --flavor web.smal", "no flavor 'web.smal'; did you mean 'web.small'?"),
        ("explain --example --group wbe", "no server group 'wbe'; did you mean 'web'?"),
        ("schedule --example --flavor web.smal", "no flavor 'web.smal'; did you mean 'web.small'?"),
        ("group show --example wbe", "no server group 'wbe'; did you mean 'web'?"),
        ("explain --example -c Hots", "no column 'Hots'; did you mean 'Host'?"),
        ("plugins --sort-column Nmae", "no column 'Nmae'; did you mean 'Name'?"),
    ],
)
def test_mistyped_name_gets_a_suggestion(refused: Refused, argv: str, said: str) -> None:
    assert said in refused(*argv.split())
