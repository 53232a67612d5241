"""The requests that an installed Nova sends to Placement for a wanted server."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import nova.conf
from nova import context, objects
from nova.objects import service
from nova.scheduler import request_filter, utils

from steelyard.cloud import Aggregate
from steelyard.cloud.wanted import WantedServer

_SCHEDULER = "scheduler"
_NO_FALLBACK = "disable_fallback_pcpu_query"
# The groups of the options that are not in the group ``scheduler``.
_OTHER_GROUPS = {
    _NO_FALLBACK: "workarounds",
    "enabled_filters": "filter_scheduler",
    "weight_classes": "filter_scheduler",
}
_NEWEST_COMPUTE = 2**31 - 1


class SentRequests(NamedTuple):
    """The query strings of the requests for allocation candidates."""

    query_strings: list[str]
    failure: str
    """The error with which Nova ends the request before it asks Placement; usually empty."""


def sent_requests(
    wanted: WantedServer,
    *,
    aggregates: Sequence[Aggregate],
    nodes: Mapping[str, Sequence[str]],
    options: Mapping[str, object],
    newest_computes: bool = False,
) -> SentRequests:
    """Return the requests that Nova's own code sends.

    ``nodes`` are the UUIDs of the compute nodes, by the names of their hosts. ``options`` are those
    of Nova's group ``scheduler``, and ``disable_fallback_pcpu_query``, ``enabled_filters`` and
    ``weight_classes``. ``newest_computes`` says that all nova-compute services are as new as this
    Nova, or newer.

    Meanwhile, Nova's configuration and the queries of its database are replaced in this process,
    so no other thread may use Nova.
    """
    objects.register_all()
    try:
        with (
            _quiet(),
            _options(options),
            _given(aggregates),
            _oldest_compute(_NEWEST_COMPUTE if newest_computes else 0),
        ):
            falls_back = not options.get(_NO_FALLBACK)
            found = list(_query_strings(wanted, _Nodes(nodes), falls_back=falls_back))
    except Exception as error:  # noqa: BLE001  (any error of Nova ends the request)
        return SentRequests([], str(error))
    return SentRequests(found, "")


def _query_strings(wanted: WantedServer, nodes: "_Nodes", *, falls_back: bool) -> Iterator[str]:
    spec = _request_spec(wanted)
    admin = context.get_admin_context()
    _check_group(wanted, admin)
    request_filter.process_reqspec(admin, spec)
    first = utils.resources_from_request_spec(admin, spec, nodes)
    yield first.to_querystring()
    if first.cpu_pinning_requested and falls_back:
        second = utils.resources_from_request_spec(
            admin, spec, nodes, enable_pinning_translate=False
        )
        yield second.to_querystring()


def _request_spec(wanted: WantedServer) -> Any:
    flavor = wanted.flavor
    spec = objects.RequestSpec(
        flavor=objects.Flavor(
            name=flavor.name,
            vcpus=flavor.vcpus,
            memory_mb=flavor.memory_mb,
            # The disk that Nova requests even if the root disk is on a volume.
            root_gb=0,
            ephemeral_gb=flavor.root_gb,
            swap=0,
            extra_specs=dict(flavor.extra_specs),
        ),
        image=objects.ImageMeta.from_dict(
            {
                "id": "00000000-0000-4000-8000-000000000000",
                "name": "image",
                "disk_format": wanted.disk_format or "raw",
                "properties": dict(wanted.image_properties),
            }
        ),
        is_bfv=wanted.from_volume,
        project_id=wanted.project,
        availability_zone=wanted.availability_zone or None,
        scheduler_hints={key: list(values) for key, values in wanted.scheduler_hints.items()},
        num_instances=wanted.count,
        requested_resources=[],
        request_level_params=objects.RequestLevelParams(),
        requested_networks=objects.NetworkRequestList(objects=[]),
        force_hosts=None,
        force_nodes=None,
    )
    if wanted.group is not None:
        spec.scheduler_hints.setdefault("group", [wanted.group.uuid])
    if wanted.host:
        spec.requested_destination = objects.Destination(
            host=wanted.host, node=None, aggregates=None, forbidden_aggregates=None
        )
    return spec


def _check_group(wanted: WantedServer, admin: Any) -> None:
    """Raise Nova's error if it has no plugin for the policy of the group."""
    if wanted.group is None:
        return
    group = objects.InstanceGroup(policy=str(wanted.group.policy), hosts=[], members=[])
    spec = objects.RequestSpec(instance_group=group, instance_uuid=wanted.group.uuid or "group")
    utils.reset_globals()  # Nova keeps the answers for the options of the first request
    try:
        with (
            _replaced(objects.InstanceGroup, "get_by_instance_uuid", lambda *_: group),
            _replaced(objects.InstanceGroup, "get_hosts", lambda *_: []),
        ):
            utils.setup_instance_group(admin, spec)
    finally:
        utils.reset_globals()


class _Nodes:
    """The part of Nova's host manager that finds compute nodes."""

    def __init__(self, nodes: Mapping[str, Sequence[str]]) -> None:
        self._nodes = nodes

    def get_compute_nodes_by_host_or_node(
        self, _context: object, host: str, _node: object, cell: object = None
    ) -> list[Any]:
        return [
            objects.ComputeNode(uuid=uuid, host=host, hypervisor_hostname=host)
            for uuid in self._nodes.get(host, ())
        ]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress Nova's log in this block, because the rebuilt request has the same notes."""
    logger = logging.getLogger("nova")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def _options(options: Mapping[str, object]) -> Iterator[None]:
    """Override Nova's options in this block."""
    conf = nova.conf.CONF
    groups = {name: _OTHER_GROUPS.get(name, _SCHEDULER) for name in options}
    # Clearing an override also clears the one before it, so leave equal values alone.
    differing = [name for name, value in options.items() if conf[groups[name]][name] != value]
    try:
        for name in differing:
            conf.set_override(name, options[name], group=groups[name])
        yield
    finally:
        for name in differing:
            conf.clear_override(name, group=groups[name])


@contextlib.contextmanager
def _given(aggregates: Sequence[Aggregate]) -> Iterator[None]:
    """Answer the queries for aggregates from these in this block."""

    def by_metadata(_context: object, key: str | None = None, value: str | None = None) -> Any:
        return _matching(aggregates, lambda name, text: key in (None, name) and text == value)

    def non_matching(_context: object, ignored_keys: list[str], key_prefix: str, value: str) -> Any:
        return _matching(
            aggregates,
            lambda name, text: (
                name.startswith(key_prefix) and name not in ignored_keys and text == value
            ),
        )

    with (
        _replaced(objects.AggregateList, "get_by_metadata", by_metadata),
        _replaced(objects.AggregateList, "get_non_matching_by_metadata_keys", non_matching),
    ):
        yield


def _oldest_compute(version: int) -> contextlib.AbstractContextManager[None]:
    """Answer the query for the oldest nova-compute service with this version in a block."""
    return _replaced(service, "get_minimum_version_all_cells", lambda *_: version)


def _matching(aggregates: Sequence[Aggregate], matches: Callable[[str, str], bool]) -> list[Any]:
    """Return the aggregates with matching metadata, with only that metadata, as Nova's queries."""
    found = []
    for each in aggregates:
        metadata = {name: text for name, text in each.metadata.items() if matches(name, text)}
        if metadata:
            found.append(objects.Aggregate(name=each.name, uuid=each.uuid, metadata=metadata))
    return found


@contextlib.contextmanager
def _replaced(owner: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Replace a function of Nova in this block."""
    original = vars(owner)[name]
    setattr(owner, name, staticmethod(function))
    try:
        yield
    finally:
        setattr(owner, name, original)
