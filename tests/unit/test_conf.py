from typing import Any

import pytest
from oslo_config import cfg, generator

from steelyard import conf as options


def test_registering_twice_is_harmless(conf: Any) -> None:
    assert options.register(conf).host_subset_size == 1
    assert options.register(conf).host_subset_size == 1


def test_the_global_configuration_is_the_default() -> None:
    assert options.register(None) is cfg.CONF[options.GROUP]


def test_every_option_is_offered_to_the_sample_generator(tmp_path: Any) -> None:
    sample = tmp_path / "sample.conf"
    conf = cfg.ConfigOpts()
    generator.register_cli_opts(conf)
    conf(["--namespace", "steelyard", "--output-file", str(sample)], project="generator")
    generator.generate(conf)
    text = sample.read_text()
    listed = dict(options.list_opts())
    assert list(listed) == ["steelyard", "steelyard_tags"]
    for group, opts in listed.items():
        section = text.partition(f"[{group}]\n")[2].partition("\n[")[0]
        assert [opt.name for opt in opts if f"#{opt.name} =" not in section] == []


def test_every_option_explains_itself() -> None:
    opts = [opt for _, opts in options.list_opts() for opt in opts]
    for opt in opts:
        assert opt.help
        summary = opt.help.strip().partition("\n\n")[0]
        assert summary.endswith("."), opt.name


@pytest.mark.parametrize(
    "line",
    [
        "host_subset_size = 0",
        "host_subset_size =",
        "ram_allocation_ratio = -1",
        "ram_allocation_ratio =",
        "ram_weight_multiplier =",
        "seed = x",
    ],
)
def test_bad_values_are_named(configured: Any, line: Any) -> None:
    group = options.register(configured(line))
    with pytest.raises(cfg.ConfigFileValueError, match=line.split()[0]):
        getattr(group, line.split()[0])
