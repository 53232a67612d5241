"""Errors about invalid values of options."""

import re
import traceback
from typing import Any

import pytest
from oslo_config import cfg

from steelyard import conf as options
from steelyard.conf import InvalidOption


@pytest.mark.parametrize(
    "line",
    [
        "host_subset_size =",
        "ram_allocation_ratio = -1",
        "ram_weight_multiplier =",
    ],
)
def test_register_with_an_invalid_value_names_the_option(configured: Any, line: Any) -> None:
    group = options.register(configured(line))
    with pytest.raises(cfg.ConfigFileValueError, match=line.split()[0]):
        getattr(group, line.split()[0])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["", "host_subset_size = 0"],
            ":3: [steelyard] host_subset_size = '0': expected a whole number of at least 1",
        ),
        (
            ["# comment", "seed = 7", "seed = x"],
            ":4: [steelyard] seed = 'x': expected a whole number",
        ),
        (
            ["log_no_host = perhaps", "# comment"],
            ":2: [steelyard] log_no_host = 'perhaps': expected true or false",
        ),
        (
            ["ram_weight_multiplier = inf", "seed = 1"],
            ":2: [steelyard] ram_weight_multiplier = 'inf': expected a finite number",
        ),
        (
            ["ram_allocation_ratio ="],
            ":2: [steelyard] ram_allocation_ratio = '': expected a finite number of at least 0.0",
        ),
        (
            ["failure_domains = rack,", " host"],
            ":2: [steelyard] failure_domains = 'rack,\\nhost': 'host' is always the nearest domain; leave it out",
        ),
    ],
)
def test_invalid_option_quotes_file_line_option_value_and_expectation(
    configured: Any, tmp_path: Any, lines: Any, message: Any
) -> None:
    group = options.register(configured(*lines))
    with pytest.raises(InvalidOption) as caught:
        getattr(group, message.split()[2])
    assert str(caught.value) == f"{tmp_path}/steelyard.conf{message}"


def test_invalid_option_in_several_files_names_the_last_one(tmp_path: Any) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "b.conf").write_text("[DEFAULT]\n[steelyard]\nseed = b\n")
    (tmp_path / "a.conf").write_text("[steelyard]\nseed = a\n")
    conf = cfg.ConfigOpts()
    argv = ["--config-file", str(tmp_path / "a.conf"), "--config-dir", str(tmp_path / "conf.d")]
    conf(argv, project="steelyard")
    with pytest.raises(InvalidOption) as caught:
        _ = options.register(conf).seed
    assert str(caught.value).startswith(f"{tmp_path}/conf.d/b.conf:3: [steelyard] seed = 'b': ")


def test_invalid_option_in_the_environment_names_the_variable(
    configured: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("OS_STEELYARD__SEED", "x")
    with pytest.raises(InvalidOption) as caught:
        _ = options.register(configured("seed = 1")).seed
    assert str(caught.value) == (
        "environment variable OS_STEELYARD__SEED = 'x': expected a whole number"
    )


def test_invalid_option_above_its_maximum_names_the_maximum(tmp_path: Any) -> None:
    (tmp_path / "a.conf").write_text("[steelyard_tags]\nprefetch = 70000\n")
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[str(tmp_path / "a.conf")], default_config_dirs=[])
    with pytest.raises(
        InvalidOption,
        match="= '70000': expected a whole number of at least 1 and at most 65535",
    ):
        _ = options.register_tags(conf).prefetch


def test_invalid_option_with_a_group_in_upper_case_is_located(configured: Any) -> None:
    conf = configured("host_subset_size = x", "host-subset-size = 7")
    with pytest.raises(InvalidOption, match=r"conf:2: \[steelyard\] host_subset_size = 'x'"):
        _ = options.register(conf).host_subset_size


def with_former_names(conf: Any) -> Any:
    """Return the group with options that were renamed."""
    former = [cfg.DeprecatedOpt("count", "former"), cfg.DeprecatedOpt("spares", None)]
    conf.register_opts(
        [cfg.IntOpt("spare_hosts", deprecated_opts=former), cfg.IntOpt("x")], group=options.GROUP
    )
    return options.register(conf)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["spares = y"], "steelyard.conf:2: [steelyard] spares = 'y': expected a whole number"),
        (["[former]", "count = y"], "steelyard.conf:3: [former] count = 'y': expected a whole"),
        (
            ["spare_hosts = x", "spares = 1"],
            "steelyard.conf:2: [steelyard] spare_hosts = 'x': expected a whole number",
        ),
    ],
)
def test_invalid_option_under_a_deprecated_name_is_located(
    configured: Any, lines: Any, message: Any
) -> None:
    with pytest.raises(InvalidOption) as caught:
        _ = with_former_names(configured(*lines)).spare_hosts
    assert message in str(caught.value)


def test_invalid_option_set_by_no_file_has_no_text(configured: Any) -> None:
    conf = configured()
    conf.register_opts([cfg.StrOpt("word", default="$x")], group=options.GROUP)
    with pytest.raises(InvalidOption) as caught:
        _ = options.register(conf).word
    assert str(caught.value) == (
        "[steelyard] word: unknown option 'x' after '$'; write $$ for a literal $"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "log_no_host = $sed",
            "log_no_host = '$sed': unknown option 'sed' after '$'; write $$ for a literal $",
        ),
        (
            "failure_domains = a, ${up.down}",
            "failure_domains = 'a, ${up.down}': unknown option after '$'; write $$ for a literal $",
        ),
    ],
)
def test_invalid_option_with_an_unknown_reference_explains_the_dollar(
    configured: Any, tmp_path: Any, line: str, message: str
) -> None:
    with pytest.raises(InvalidOption) as caught:
        getattr(options.register(configured(line)), line.split(maxsplit=1)[0])
    assert str(caught.value) == f"{tmp_path}/steelyard.conf:2: [steelyard] {message}"


def test_invalid_secret_with_a_dollar_is_not_printed(tmp_path: Any) -> None:
    (tmp_path / "a.conf").write_text("[steelyard_tags]\ntransport_url = amqp://u:pa$word@h\n")
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[str(tmp_path / "a.conf")], default_config_dirs=[])
    with pytest.raises(InvalidOption) as caught:
        _ = options.register_tags(conf).transport_url
    assert str(caught.value) == (
        f"{tmp_path}/a.conf:2: [steelyard_tags] transport_url: unknown option after '$'; "
        "write $$ for a literal $"
    )
    assert "word" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("opt", "reason"),
    [
        (cfg.IntOpt("pin", secret=True), "expected a whole number"),
        (cfg.StrOpt("pin", secret=True, choices=["a"]), "the value is not allowed"),
    ],
)
def test_invalid_secret_is_not_printed(configured: Any, opt: Any, reason: str) -> None:
    conf = configured("pin = hunter2")
    conf.register_opts([opt], group=options.GROUP)
    with pytest.raises(InvalidOption) as caught:
        _ = options.register(conf).pin
    assert str(caught.value).endswith(f"steelyard.conf:2: [steelyard] pin: {reason}")
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("opt", "reason"),
    [
        (cfg.IntOpt("size", max=5), "expected a whole number of at most 5"),
        (cfg.FloatOpt("size", min=1), "expected a number of at least 1"),
        (cfg.PortOpt("size", choices=[1, 2]), "but found 7"),
    ],
)
def test_invalid_number_names_its_limits(configured: Any, opt: Any, reason: str) -> None:
    conf = configured("size = 7" if "Float" not in type(opt).__name__ else "size = 0.5")
    conf.register_opts([opt], group=options.GROUP)
    with pytest.raises(InvalidOption, match=re.escape(reason)):
        _ = options.register(conf).size


def test_explained_error_names_the_option_that_the_plugin_read(configured: Any) -> None:
    conf = configured("first = x", "second = x", "third = $sed")
    conf.register_opts(
        [cfg.IntOpt("first"), cfg.IntOpt("second"), cfg.StrOpt("third")], group=options.GROUP
    )
    for name, reason in (("second", "expected a whole number"), ("third", "unknown option 'sed'")):
        with pytest.raises(cfg.Error) as caught:
            getattr(conf.steelyard, name)
        explained = options.explained(conf, caught.value)
        assert isinstance(explained, InvalidOption)
        assert f"[steelyard] {name}" in explained.where
        assert explained.reason.startswith(reason)


def test_explained_returns_unrelated_errors_unchanged(configured: Any) -> None:
    conf = configured("first = x")
    conf.register_opts([cfg.IntOpt("first")], group=options.GROUP)
    error = cfg.ConfigSourceValueError("something else")
    assert options.explained(conf, error) is error
