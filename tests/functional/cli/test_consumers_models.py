"""The commands on consumers with the consumer model that the configuration names."""

import json
import pathlib
from typing import Any

import pytest
from oslo_config import cfg

from steelyard import conf as options
from steelyard.cloud import Cloud
from steelyard.errors import PluginError
from steelyard.scheduler import FilterScheduler
from support.third_parties import make_importable

pytestmark = pytest.mark.usefixtures("closed_databases")

NOTE = ("--url", "note:INSTANCE")


@pytest.fixture
def run(
    steelyard: Any, third_party: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Return a function that runs a command with the given consumer model."""
    make_importable(monkeypatch, third_party, "weekend_plugins")
    path = tmp_path / "steelyard.conf"

    def run(model: str, *argv: str) -> tuple[int, str, str]:
        path.write_text(f"[steelyard]\nconsumer_model = {model}\n")
        return steelyard("--config-file", str(path), *argv)  # type: ignore[no-any-return]

    return run


def test_usage_and_types_read_the_configured_model(run: Any) -> None:
    status, out, err = run("notes", "usage", "--project", "p", *NOTE, "-f", "json")
    assert (status, err) == (0, "")
    assert json.loads(out)["usages"] == [
        {"type": "INSTANCE", "consumers": 1, "resources": {"VCPU": 2}}
    ]
    status, out, err = run("notes", "consumer", "types", "--project", "p", *NOTE, "-f", "json")
    assert (status, err) == (0, "")
    assert [row["type"] for row in json.loads(out)["types"]] == ["INSTANCE"]


@pytest.mark.parametrize(
    ("argv", "method"),
    [
        (("consumer", "types"), "types"),
        (("consumer", "prune-types"), "remove_unused_types"),
        (("consumer", "backfill", "--type", "INSTANCE", "--project", "p"), "update"),
    ],
)
def test_command_names_the_method_that_the_model_lacks(
    run: Any, argv: tuple[str, ...], method: str
) -> None:
    status, out, err = run("notes", *argv, *NOTE)
    assert (status, out) == (2, "")
    assert err == (
        f"steelyard: the consumer model 'notes' has no method {method!r}, which this command "
        f"needs; see 'Consumer models' in the reference of plugins\n"
    )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            "notes",
            "the consumer model 'notes' of weekend-plugins 1.2.3 cannot be loaded: ValueError: "
            "not a note: sqlite://; installed: ",
        ),
        ("placement", "--url and the option consumer_model = placement contradict each other"),
        ("note", "no consumer model 'note'; installed: notes (weekend-plugins 1.2.3), "),
    ],
)
def test_command_reports_a_model_that_cannot_be_constructed(
    run: Any, model: str, message: str
) -> None:
    for argv in (("usage", "--project", "p"), ("consumer", "types"), ("consumer", "prune-types")):
        status, out, err = run(model, *argv, "--url", "sqlite://")
        assert (status, out) == (2, "")
        assert err.startswith(f"steelyard: {message}")


@pytest.mark.usefixtures("run")
def test_scheduler_reports_a_model_that_cannot_be_constructed() -> None:
    conf = cfg.ConfigOpts()
    options.register(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("consumer_model", "notes", group=options.GROUP)
    conf.set_override("enabled_weighers", ["NameWeigher"], group=options.GROUP)
    scheduler = FilterScheduler(Cloud({}, {}, {}, {}, {}), conf)
    with pytest.raises(PluginError, match="cannot be loaded: ValueError: not a note: sqlite://"):
        scheduler.consumers("sqlite://")
    assert scheduler.consumers("note:INSTANCE").count("p") == 1


def test_unknown_option_is_reported(run: Any) -> None:
    _, _, err = run("notes\nconsumer_modle = x", "usage", "--project", "p", *NOTE)
    assert "[steelyard] consumer_modle; did you mean 'consumer_model'?" in err
