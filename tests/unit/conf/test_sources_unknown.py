"""Warnings about unknown and mistyped options."""

from typing import Any

from oslo_config import cfg

from steelyard import conf as options


def warnings_of(caplog: Any) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_warn_of_unknown_logs_each_option_once(configured: Any, caplog: Any) -> None:
    conf = configured("failure_domain = rack", "host_subset_size = 2", "[other]", "seed = 1")
    options.register(conf)
    options.warn_of_unknown(conf)
    options.warn_of_unknown(conf)
    (message,) = warnings_of(caplog)
    assert message.endswith(
        "steelyard.conf:2: [steelyard] failure_domain; did you mean 'failure_domains'?"
    )


def test_option_with_dashes_in_a_file_is_unknown(configured: Any, caplog: Any) -> None:
    conf = configured("host-subset-size = 7")
    assert options.register(conf).host_subset_size == 1
    options.warn_of_unknown(conf)
    (message,) = warnings_of(caplog)
    assert message.endswith(
        "steelyard.conf:2: [steelyard] host-subset-size; did you mean 'host_subset_size'?"
    )


def with_former_names(conf: Any) -> Any:
    """Return the group with options that were renamed."""
    former = [cfg.DeprecatedOpt("count", "former"), cfg.DeprecatedOpt("spares", None)]
    conf.register_opts(
        [cfg.IntOpt("spare_hosts", deprecated_opts=former), cfg.IntOpt("x")], group=options.GROUP
    )
    return options.register(conf)


def test_warn_of_unknown_accepts_deprecated_names(configured: Any, caplog: Any) -> None:
    conf = configured("spares = 3", "[former]", "count = 4")
    assert with_former_names(conf).spare_hosts == 4
    options.warn_of_unknown(conf)
    assert [message for message in warnings_of(caplog) if "Unknown option" in message] == []


def test_warn_of_unknown_accepts_options_of_plugins(configured: Any, caplog: Any) -> None:
    conf = configured("enabled_filters =", "licence = x", "zzzzzz = 1")
    options.register(conf)
    conf.register_opts([cfg.StrOpt("licence")], group=options.GROUP)
    options.warn_of_unknown(conf)
    (message,) = warnings_of(caplog)
    assert "steelyard.conf:4: [steelyard] zzzzzz" in message


def test_warn_of_unknown_skips_unreadable_files(
    configured: Any, caplog: Any, tmp_path: Any
) -> None:
    conf = configured("failure_domain = rack")
    options.register(conf)
    (tmp_path / "steelyard.conf").write_text("[steelyard]\nfailure_domain = rack\nnonsense\n")
    options.warn_of_unknown(conf)
    (tmp_path / "steelyard.conf").unlink()
    options.warn_of_unknown(conf)
    assert len(warnings_of(caplog)) == 1
