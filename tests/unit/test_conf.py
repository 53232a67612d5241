"""The registration of options, and the sample file."""

from typing import Any

from oslo_config import cfg, generator

from steelyard import conf as options


def test_register_twice_returns_the_same_values(conf: Any) -> None:
    assert options.register(conf).host_subset_size == 1
    assert options.register(conf).host_subset_size == 1


def test_register_defaults_to_the_global_configuration() -> None:
    options.register(None)
    assert "host_subset_size" in cfg.CONF[options.GROUP]


def test_sample_generator_lists_every_option(tmp_path: Any) -> None:
    sample = tmp_path / "sample.conf"
    conf = cfg.ConfigOpts()
    generator.register_cli_opts(conf)
    conf(["--namespace", "steelyard", "--output-file", str(sample)], project="generator")
    generator.generate(conf)
    text = sample.read_text()
    listed = dict(options.list_opts())
    assert list(listed) == ["steelyard", "steelyard_consumers", "steelyard_tags"]
    for group, opts in listed.items():
        section = text.partition(f"[{group}]\n")[2].partition("\n[")[0]
        assert [opt.name for opt in opts if f"#{opt.name} =" not in section] == []


def test_options_have_help() -> None:
    opts = [opt for _, opts in options.list_opts() for opt in opts]
    for opt in opts:
        assert opt.help
        summary = opt.help.strip().partition("\n\n")[0]
        assert summary.endswith("."), opt.name
