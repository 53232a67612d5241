"""The options of ``[steelyard]``: for plugins, the adapters for Nova and the embedded scheduler."""

from oslo_config import cfg

from steelyard.conf.types import Count, DomainKeys, FiniteFloat, Removed

GROUP = "steelyard"

_plugin_opts = [
    cfg.ListOpt(
        "force_check_ignored_keys",
        default=[
            "availability_zone",
            "*_weight_multiplier",
            "filter_tenant_id*",
            "trait:*",
            "max_instances_per_host",
            "max_io_ops_per_host",
            "instance_type",
            "cpu_allocation_ratio",
            "ram_allocation_ratio",
            "disk_allocation_ratio",
        ],
        help="""
Metadata keys of forced aggregates that AggregateInstanceTypeFilter does not require of flavors.

An aggregate with the metadata ``force_metadata_check: true`` requires each of its other keys of
every flavor, except those that match one of these patterns (``*``, ``?`` and ``[...]`` as in a
shell): Nova or steelyard reads them for other purposes. The keys in the option
``failure_domains`` are also excepted. Keys are matched without the scope
``aggregate_instance_extra_specs:``.

If the list is empty, every key is required.
""",
    ),
    cfg.ListOpt(
        "trial_filters",
        default=[],
        mutable=True,
        help="""
Filters on trial, which log the hosts that they would reject and let them pass.

For each request with such hosts, the filter logs one line at info level with their number and the
causes, and one line per host at debug level. Every filter that ``steelyard plugins`` lists is
accepted, also those of other distributions. Nova's own filters cannot be put on trial.

``steelyard check`` and ``steelyard capacity`` count the hosts that a filter on trial would reject
as rejected.
""",
    ),
    cfg.BoolOpt(
        "log_no_host",
        default=True,
        mutable=True,
        help="""
Whether a filter that leaves no host for a request logs a summary of its reasons.

The summary is one line at info level, with the most frequent cause first. The reason for each host
is logged at debug level, regardless of this option.
""",
    ),
    cfg.Opt(
        "ram_weight_multiplier",
        type=FiniteFloat(),
        default=1.0,
        mutable=True,
        help="""
The multiplier of RAMWeigher.

A positive number prefers hosts with more free RAM, so servers spread. A negative number prefers
hosts with less, so servers stack. 0 disables the weigher. The metadata key
``ram_weight_multiplier`` of a host's aggregates takes precedence; the lowest of several values
applies.
""",
    ),
    cfg.Opt(
        "cpu_weight_multiplier",
        type=FiniteFloat(),
        default=1.0,
        mutable=True,
        help="""
The multiplier of CPUWeigher.

It is like ``ram_weight_multiplier``, for free vCPUs. The metadata key is
``cpu_weight_multiplier``.
""",
    ),
    cfg.Opt(
        "disk_weight_multiplier",
        type=FiniteFloat(),
        default=1.0,
        mutable=True,
        help="""
The multiplier of DiskWeigher.

It is like ``ram_weight_multiplier``, for free disk. The metadata key is
``disk_weight_multiplier``.
""",
    ),
    cfg.Opt(
        "soft_affinity_weight_multiplier",
        type=FiniteFloat(),
        default=1000.0,
        mutable=True,
        help="""
The multiplier of ServerGroupSoftAffinityWeigher.

With the default, the policy outweighs Nova's weighers for free RAM, CPU and disk, which spread
servers, but not those that avoid a host for other reasons (``build_failure_weight_multiplier`` and
``cross_cell_move_weight_multiplier`` are 1000000.0). 0 disables the weigher. The metadata key
``soft_affinity_weight_multiplier`` of a host's aggregates takes precedence; the lowest of several
values applies.
""",
    ),
    cfg.Opt(
        "soft_anti_affinity_weight_multiplier",
        type=FiniteFloat(),
        default=1000.0,
        mutable=True,
        help="""
The multiplier of ServerGroupSoftAntiAffinityWeigher.

It is like ``soft_affinity_weight_multiplier``, for groups with the policy ``soft-anti-affinity``.
The metadata key is ``soft_anti_affinity_weight_multiplier``.
""",
    ),
    cfg.Opt(
        "failure_domains",
        type=DomainKeys(),
        default=[],
        sample_default="rack, room",
        help="""
Metadata keys of aggregates that name failure domains, from near to far.

With ``rack, room``, servers of a group with the policy ``soft-anti-affinity`` are spread over rooms
first, then over the racks of a room, then over the hosts of a rack. The policy ``soft-affinity``
gathers them in the same order. The host itself is always the nearest domain and is not listed.
Hosts without a key form one domain together.

On a host that is not a candidate, such as a full one, all servers of the group count as one. Its
domains are known only if an aggregate that names them also contains a candidate. For that reason,
create an aggregate for each room, instead of adding a second key to the aggregates of the racks.

If the list is empty, only the hosts themselves are domains.
""",
    ),
    cfg.Opt(
        "cpu_allocation_ratio",
        type=FiniteFloat(min=0.0),
        default=4.0,
        help="""
The number of vCPUs that CapacityFilter lets servers use for each CPU of a host.

CPUWeigher counts the free vCPUs with the same number.
""",
    ),
    cfg.Opt(
        "ram_allocation_ratio",
        type=FiniteFloat(min=0.0),
        default=1.0,
        help="""
The RAM that CapacityFilter lets servers use, as a multiple of the host's RAM.
""",
    ),
    cfg.Opt(
        "disk_allocation_ratio",
        type=FiniteFloat(min=0.0),
        default=1.0,
        help="""
The disk that CapacityFilter lets servers use, as a multiple of the host's disk.
""",
    ),
]

_nova_opts = [
    cfg.ListOpt(
        "nova_weighers",
        default=["ServerGroupSoftAffinityWeigher", "ServerGroupSoftAntiAffinityWeigher"],
        help="""
The weighers that ``steelyard.nova.all_weighers`` offers to Nova.

Nova uses every weigher that it is offered, so other installed weighers are left out. Every weigher
that ``steelyard plugins`` lists is accepted, except those that Nova replaces with its own, such as
``RAMWeigher``.
""",
    ),
]

_scheduler_opts = [
    cfg.ListOpt(
        "enabled_filters",
        default=[
            "InServiceFilter",
            "CapacityFilter",
            "TraitsFilter",
            "AggregateInstanceTypeFilter",
            "ServerGroupAffinityFilter",
            "ServerGroupAntiAffinityFilter",
        ],
        help="""
The filters that the embedded scheduler runs, in this order.

A host must pass all of them. Put cheap filters that reject many hosts first. Every filter that
``steelyard plugins`` lists is accepted. Nova does not read this option, but its own
``[filter_scheduler] enabled_filters``.
""",
    ),
    cfg.ListOpt(
        "enabled_weighers",
        default=[
            "RAMWeigher",
            "CPUWeigher",
            "DiskWeigher",
            "ServerGroupSoftAffinityWeigher",
            "ServerGroupSoftAntiAffinityWeigher",
        ],
        help="""
The weighers that the embedded scheduler runs.

Each weigher gives a weight to every host that passed the filters. The weights are scaled to the
range from 0 to 1, multiplied by the weigher's multiplier and added up. The host with the highest
sum is selected. Every weigher that ``steelyard plugins`` lists is accepted.
""",
    ),
    cfg.StrOpt(
        "query_builder",
        default="traits",
        help="""
The query builder with which the embedded scheduler turns a flavor into a request to Placement.

Every name in the entry point group ``steelyard.query_builders`` is accepted.
""",
    ),
    cfg.StrOpt(
        "consumer_model",
        default="sql",
        help="""
The consumer model in which the embedded scheduler records allocations, if recording is requested.

``sql`` is a store in a database, ``placement`` is a Placement service. Every name in the entry
point group ``steelyard.consumer_models`` is accepted.
""",
    ),
    cfg.Opt(
        "host_subset_size",
        type=Count(min=1),
        default=1,
        help="""
The number of best hosts from which the embedded scheduler picks one at random.

With 1, the scheduler selects the best host; of several equally good ones, the first in the cloud
file. With greater numbers, concurrent schedulers seldom select the same host.
""",
    ),
    cfg.IntOpt(
        "seed",
        help="""
The seed of the embedded scheduler's random numbers.

With a seed, the same requests on the same cloud get the same decisions. Without one, decisions
differ from run to run if ``host_subset_size`` is greater than 1.
""",
    ),
]

OPTS = [*_plugin_opts, *_nova_opts, *_scheduler_opts]

# Removed options. Setting one is an error, since ignoring it would silently change decisions.
REMOVED_OPTS = [
    cfg.Opt("enforce", type=Removed("list the filters that must not reject hosts in trial_filters"))
]
