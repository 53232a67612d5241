import pytest
from oslo_config import cfg, generator

from steelyard import conf as options


def test_registering_twice_is_harmless(conf):
    assert options.register(conf).host_subset_size == 1
    assert options.register(conf).host_subset_size == 1


def test_the_global_configuration_is_the_default():
    assert options.register(None) is cfg.CONF[options.GROUP]


def test_every_option_is_offered_to_the_sample_generator(tmp_path):
    sample = tmp_path / "sample.conf"
    conf = cfg.ConfigOpts()
    generator.register_cli_opts(conf)
    conf(["--namespace", "steelyard", "--output-file", str(sample)], project="generator")
    generator.generate(conf)
    text = sample.read_text()
    assert "[steelyard]" in text
    ((group, opts),) = options.list_opts()
    assert group == "steelyard"
    assert [opt.name for opt in opts if f"#{opt.name} = " not in text] == []


def test_every_option_explains_itself():
    ((_, opts),) = options.list_opts()
    for opt in opts:
        summary, _, rest = opt.help.strip().partition("\n\n")
        assert summary.endswith("."), opt.name
        assert "\n" not in summary or not rest, opt.name


@pytest.mark.parametrize("line", ["host_subset_size = 0", "ram_allocation_ratio = -1", "seed = x"])
def test_bad_values_are_named(configured, line):
    group = options.register(configured(line))
    with pytest.raises(cfg.ConfigFileValueError, match=line.split()[0]):
        getattr(group, line.split()[0])
