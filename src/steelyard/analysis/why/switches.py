"""The options of Nova that decide which request it sends to Placement."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg

from steelyard import conf as options
from steelyard.analysis.nova_conf import NOVAS_DEFAULT_FILTERS, NOVAS_GROUP, NOVAS_WEIGHERS
from steelyard.cloud.wanted import WantedServer

_MOST_RESULTS = 1000


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """The values of the options, with Nova's defaults as defaults."""

    limit_tenants_to_placement_aggregate: bool = False
    placement_aggregate_required_for_tenants: bool = False
    query_placement_for_image_type_support: bool = False
    enable_isolated_aggregate_filtering: bool = False
    image_metadata_prefilter: bool = False
    query_placement_for_routed_network_aggregates: bool = False
    max_placement_results: int = _MOST_RESULTS
    disable_fallback_pcpu_query: bool = False
    enabled_filters: tuple[str, ...] = NOVAS_DEFAULT_FILTERS
    weight_classes: tuple[str, ...] = (NOVAS_WEIGHERS,)
    image_properties_default_architecture: str = ""
    default_schedule_zone: str = ""
    """The zone of servers that are requested without one; usually empty."""
    assumed: bool = True
    """Whether no configuration of Nova was read."""

    @classmethod
    def of_files(cls, files: Sequence[str]) -> "Switches":
        """Return the values in these configuration files, read as Nova reads them.

        Raises InvalidOption if a value is invalid.
        """
        conf = cfg.ConfigOpts()
        conf([], project="nova", default_config_files=list(files), default_config_dirs=[])
        found: dict[str, Any] = {}
        for group, opts in _OPTS.items():
            conf.register_opts(opts, group=group)
            values = options.Values(conf, group)
            found |= {opt.dest: getattr(values, opt.dest) for opt in opts}
        found |= {name: tuple(found[name]) for name in ("enabled_filters", "weight_classes")}
        return cls(**found, assumed=False)

    def uses_default_zone(self, wanted: WantedServer) -> bool:
        """Return whether the default zone applies: none is requested, and no record has one.

        Nova records the default zone like a requested one, so a record without a zone is of a
        request that none applied to.
        """
        return not wanted.availability_zone and "availability_zone" not in wanted.sources

    def zone_of(self, wanted: WantedServer) -> str:
        """Return the availability zone that Nova applies; empty without one."""
        if self.uses_default_zone(wanted):
            return self.default_schedule_zone
        return wanted.availability_zone

    @property
    def of_requests(self) -> dict[str, object]:
        """The values of the options that decide the request, by their names.

        The default zone is apart: Nova applies it before it makes a request.
        """
        found = {opt.dest: getattr(self, opt.dest) for group in _OPTS for opt in _OPTS[group]}
        del found["default_schedule_zone"], found["image_properties_default_architecture"]
        return {name: list(each) if type(each) is tuple else each for name, each in found.items()}


def _switch(name: str) -> cfg.BoolOpt:
    return cfg.BoolOpt(name, default=False)


_OPTS: dict[str, list[cfg.Opt]] = {
    "scheduler": [
        _switch("limit_tenants_to_placement_aggregate"),
        _switch("placement_aggregate_required_for_tenants"),
        _switch("query_placement_for_image_type_support"),
        _switch("enable_isolated_aggregate_filtering"),
        _switch("image_metadata_prefilter"),
        _switch("query_placement_for_routed_network_aggregates"),
        cfg.IntOpt("max_placement_results", default=_MOST_RESULTS, min=1),
    ],
    "workarounds": [_switch("disable_fallback_pcpu_query")],
    NOVAS_GROUP: [
        cfg.ListOpt("enabled_filters", default=list(NOVAS_DEFAULT_FILTERS)),
        cfg.ListOpt("weight_classes", default=[NOVAS_WEIGHERS]),
        cfg.StrOpt("image_properties_default_architecture", default=""),
    ],
    "DEFAULT": [cfg.StrOpt("default_schedule_zone", default="")],
}
