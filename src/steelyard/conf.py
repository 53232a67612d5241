"""Every option of steelyard, in the groups ``[steelyard]`` and ``[steelyard_tags]``.

Nothing is registered on import. Plugins register the options on the configuration that they are
given, or on oslo.config's global one, when they are constructed.
"""

import json
import math
from typing import Any

from oslo_config import cfg, types
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

GROUP = "steelyard"
TAGS_GROUP = "steelyard_tags"


class Count(types.Integer):
    """A whole number that is given, which Integer lets be left empty."""

    def __call__(self, value: Any) -> Any:
        number = super().__call__(value)
        if number is None:
            raise ValueError("it is empty; write a whole number")
        return number


class FiniteFloat(types.Float):
    """A number that is neither infinite nor NaN nor left empty, all of which Float lets through."""

    def __call__(self, value: Any) -> Any:
        number = super().__call__(value)
        if number is None:
            raise ValueError("it is empty; write a number")
        if not math.isfinite(number):
            raise ValueError(f"{value!r} is not a finite number")
        return number


class DomainKeys(types.List):
    """Metadata keys, each once, and not the host: it is always the nearest domain."""

    def __call__(self, value: Any) -> Any:
        keys = super().__call__(value)
        for key in keys:
            if not key:
                raise ValueError(f"{value!r} has an empty key; write names separated by commas")
            if key == "host":
                raise ValueError("'host' is always the nearest domain; leave it out")
            if keys.count(key) > 1:
                raise ValueError(f"{key!r} is there twice")
        return keys


class CreationParameters(types.ConfigType):
    """What a Ganeti instance is made of, as JSON; its name and its tags come from elsewhere."""

    _DEFAULTS = {"__version__": 1, "mode": "create", "name_check": False, "ip_check": False}
    _OURS = ("instance_name", "name", "tags")

    def __init__(self) -> None:
        super().__init__(type_name="parameters as JSON")

    def __call__(self, value: Any) -> dict[str, Any]:
        try:
            found = json.loads(value) if isinstance(value, str) else value
        except ValueError as error:
            raise ValueError(f"{value!r:.200} is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise ValueError(f'{value!r:.200} is no object; write {{"os_type": "…", …}}')
        for key in self._OURS:
            if key in found:
                raise ValueError(f"{key!r} differs from instance to instance; leave it out")
        return {**self._DEFAULTS, **found}

    def _formatter(self, value: Any) -> str:
        return json.dumps(value)


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

An aggregate whose metadata says ``force_metadata_check: true`` requires each of its other keys of
every flavor. Keys that match one of these patterns (``*``, ``?`` and ``[...]`` as in a shell) are
not required, because Nova or steelyard reads them for other purposes. Neither are the keys of the
option ``failure_domains``. A key is matched without the scope ``aggregate_instance_extra_specs:``.

An empty list requires every key.
""",
    ),
    cfg.BoolOpt(
        "enforce",
        default=True,
        mutable=True,
        help="""
Whether AggregateInstanceTypeFilter rejects hosts, or only says which it would reject.

Switch this off to try the filter without risk: every host passes, and for each request that would
have lost hosts one line at info level says how many and why; at debug level, a line for each host.
""",
    ),
    cfg.BoolOpt(
        "log_no_host",
        default=True,
        mutable=True,
        help="""
Whether AggregateInstanceTypeFilter sums up its reasons when it leaves no host for a request.

The summary is one line at info level, with the most frequent reason first. The reason for each
single host is logged at debug level, whatever this option says.
""",
    ),
    cfg.Opt(
        "ram_weight_multiplier",
        type=FiniteFloat(),
        default=1.0,
        mutable=True,
        help="""
How much RAMWeigher counts.

A positive number prefers hosts with more free RAM, so servers spread; a negative one prefers
those with less, so servers stack; 0 switches the weigher off. The metadata key
``ram_weight_multiplier`` of a host's aggregates takes precedence; of several values the smallest
counts.
""",
    ),
    cfg.Opt(
        "soft_affinity_weight_multiplier",
        type=FiniteFloat(),
        default=1000.0,
        mutable=True,
        help="""
How much ServerGroupSoftAffinityWeigher counts.

The default lets the wish of a server group to stay together outrank the usual weights, which
spread servers by free RAM, CPU and disk, and leaves Nova's own reasons to avoid a host in force
(``build_failure_weight_multiplier``, ``cross_cell_move_weight_multiplier``: 1000000.0). 0 switches
the weigher off. The metadata key ``soft_affinity_weight_multiplier`` of a host's aggregates takes
precedence; of several values the smallest counts.
""",
    ),
    cfg.Opt(
        "soft_anti_affinity_weight_multiplier",
        type=FiniteFloat(),
        default=1000.0,
        mutable=True,
        help="""
How much ServerGroupSoftAntiAffinityWeigher counts.

The same as ``soft_affinity_weight_multiplier``, for server groups that wish to be spread. The
metadata key is ``soft_anti_affinity_weight_multiplier``.
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
first, then over the racks of a room, then over the hosts of a rack; those of a group with the
policy ``soft-affinity`` gather likewise. The host itself is always the nearest domain and is not
listed. Hosts whose aggregates do not have a key form one domain together.

Members of a group on a host that is no candidate, because it is full for example, count as one;
which domains it is in is known where it shares an aggregate that names them with a candidate. So
let a room be an aggregate of its own, not a second key of the aggregates that are racks.

Empty, which is the default, only the hosts themselves count.
""",
    ),
    cfg.Opt(
        "cpu_allocation_ratio",
        type=FiniteFloat(min=0.0),
        default=4.0,
        help="""
How many virtual CPUs CapacityFilter lets servers use for each one that a host has.
""",
    ),
    cfg.Opt(
        "ram_allocation_ratio",
        type=FiniteFloat(min=0.0),
        default=1.0,
        help="""
How much RAM CapacityFilter lets servers use, as a multiple of what a host has.
""",
    ),
    cfg.Opt(
        "disk_allocation_ratio",
        type=FiniteFloat(min=0.0),
        default=1.0,
        help="""
How much disk CapacityFilter lets servers use, as a multiple of what a host has.
""",
    ),
]

_nova_opts = [
    cfg.ListOpt(
        "nova_weighers",
        default=["ServerGroupSoftAffinityWeigher", "ServerGroupSoftAntiAffinityWeigher"],
        help="""
The weighers that ``steelyard.nova.all_weighers`` offers to Nova.

Nova uses every weigher that it is offered, so they are named here. Any name that
``steelyard plugins`` lists as a weigher can stand here, unless Nova has one of its own for the
same purpose, such as ``RAMWeigher``.
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

A host must pass all of them. Put first what rejects most hosts for the least work. Any name that
``steelyard plugins`` lists as a filter can stand here. Nova does not read this option: there, the
filters are named in its own ``[filter_scheduler] enabled_filters``.
""",
    ),
    cfg.ListOpt(
        "enabled_weighers",
        default=[
            "RAMWeigher",
            "ServerGroupSoftAffinityWeigher",
            "ServerGroupSoftAntiAffinityWeigher",
        ],
        help="""
The weighers that the embedded scheduler runs.

Each gives every host that passed the filters a weight; weights are normalised to the range from 0
to 1, multiplied by the weigher's multiplier and added up; the greatest sum wins. Any name that
``steelyard plugins`` lists as a weigher can stand here.
""",
    ),
    cfg.StrOpt(
        "query_builder",
        default="traits",
        help="""
What makes a request to Placement of a flavor, for the embedded scheduler.

Any name that is registered in the entry point group ``steelyard.query_builders`` can stand here.
""",
    ),
    cfg.StrOpt(
        "consumer_model",
        default="sql",
        help="""
Where the embedded scheduler records what is allocated to servers, when it is told to.

``sql`` is a store in a database, ``placement`` a real Placement. Any name that is registered in the
entry point group ``steelyard.consumer_models`` can stand here.
""",
    ),
    cfg.Opt(
        "host_subset_size",
        type=Count(min=1),
        default=1,
        help="""
From how many of the best hosts the embedded scheduler picks one at random.

With 1 the best host is taken; of equal ones, the one described first. Greater numbers keep
schedulers that decide at the same time from all picking the same host.
""",
    ),
    cfg.IntOpt(
        "seed",
        help="""
What the embedded scheduler's random numbers start from.

With a seed, the same requests on the same cloud have the same answers. Without one, they differ
from run to run wherever ``host_subset_size`` is greater than 1.
""",
    ),
]


_tags_opts = [
    cfg.StrOpt(
        "connection",
        secret=True,
        sample_default="postgresql+psycopg://steelyard:PASSWORD@db.example.org/tags",
        help="""
The database of instances and tags, as a URL of SQLAlchemy's.

If there is a password in it, the file that has this option must not be readable by everybody.
""",
    ),
    cfg.StrOpt(
        "backend",
        default="memory",
        help="""
Where tags take effect.

``memory`` is for trying out: it forgets when the process ends. ``ganeti`` is a Ganeti cluster,
described by the options that begin with ``ganeti_``. Any name that is registered in the entry point
group ``steelyard.tag_backends`` can stand here.

A database belongs to one backend. ``steelyard db upgrade --schema tags`` records the backend that
is set here, and with another backend nothing can be written to the database afterwards.
""",
    ),
    cfg.StrOpt(
        "user_prefix",
        default="cyclades:user:",
        help="""
What stands in front of users' tags, in the database and at the backend. Users never see it.

It ends in a colon. Do not change it while there are tags: they would be nobody's.
""",
    ),
    cfg.StrOpt(
        "system_prefix",
        default="cyclades:system:",
        help="""
What stands in front of the tags that the service keeps for itself.

It ends in a colon, and neither of the two prefixes begins the other.
""",
    ),
    cfg.MultiStrOpt(
        "incompatible",
        default=[],
        sample_default=["high-availability, high-performance"],
        help="""
Tags that do not go together: names with commas between, of which an instance has at most one.

The option may be repeated, for one group each. A tag that clashes with one that is there is
refused; a call that brings two that clash changes nothing.
""",
    ),
    cfg.ListOpt(
        "trusted_proxies",
        default=[],
        sample_default="127.0.0.1, 10.1.0.0/16",
        help="""
Addresses and networks of fronts that say who calls, with the headers X-Project-Id and X-User-Id.

Leave it empty where keystonemiddleware stands in front of the application in the same process: it
is recognised by itself. From everybody else these headers are worth nothing.
""",
    ),
    cfg.ListOpt(
        "system_proxies",
        default=[],
        help="""
Those of the trusted proxies that may ask about the system's own tags, with the header
``X-Tag-Owner: system``.

Only an address that no user's request comes through may stand here.
""",
    ),
    cfg.Opt(
        "max_body",
        type=Count(min=1024),
        default=65536,
        help="""
How many bytes a request can have. A greater one is refused before it is read.
""",
    ),
    cfg.Opt(
        "poll_interval",
        type=FiniteFloat(min=0.1),
        default=2.0,
        help="""
How many seconds pass between looks at the jobs that are under way.
""",
    ),
    cfg.StrOpt(
        "transport_url",
        secret=True,
        sample_default="amqp://steelyard:PASSWORD@mq.example.org/steelyard",
        help="""
The broker that outcomes of jobs come through: ``amqp://`` or, with TLS, ``amqps://``.

``steelyard tags watch`` publishes them there, and so may whoever else hears of jobs;
``steelyard tags dispatch`` settles what comes. Unless it is set, ``steelyard tags watch`` settles
outcomes by itself.

What stands behind the last slash is the virtual host; ``%2F`` is the one called ``/``. If there is
a password in the URL, the file that has this option must not be readable by everybody.
""",
    ),
    cfg.StrOpt(
        "queue",
        default="steelyard.tags",
        regex=r"^(?!amq\.)[A-Za-z0-9_.:-]{1,200}$",
        help="""
The queue that outcomes of jobs wait in. Beside it there is one with ``.dead`` at the end of its
name, for messages that are malformed.

Both are made if they are not there.
""",
    ),
    cfg.Opt(
        "prefetch",
        type=Count(min=1, max=65535),
        default=100,
        help="""
How many outcomes ``steelyard tags dispatch`` has sent to it ahead of the one that it is at.
""",
    ),
    cfg.Opt(
        "give_up_after",
        type=FiniteFloat(min=120.0),
        default=3600.0,
        help="""
How many seconds after it has begun an operation is taken to be over of which nobody knows the job.

It must be longer than the backend can take to answer.

That is so when the backend has not answered in time, or when a process has ended between asking it
and writing down the number. What has become of the tags then shows at the backend.
""",
    ),
    cfg.Opt(
        "marks_kept",
        type=FiniteFloat(min=3600.0),
        default=2592000.0,
        help="""
How many seconds it is remembered which job has been the last to change a tag.

Until then, the outcome of an older job changes nothing, however late it comes.
""",
    ),
    cfg.StrOpt(
        "ganeti_url",
        sample_default="https://ganeti.example.org:5080",
        help="""
Where the remote API of the Ganeti cluster is.

Only HTTPS is spoken there.
""",
    ),
    cfg.StrOpt(
        "ganeti_user",
        help="""
The user that the remote API of Ganeti knows us by. It must be allowed to write.
""",
    ),
    cfg.StrOpt(
        "ganeti_password",
        secret=True,
        help="""
The password of that user.

The file that has this option must not be readable by everybody.
""",
    ),
    cfg.StrOpt(
        "ganeti_ca",
        help="""
A file with the certificates, in PEM, of those who may vouch for Ganeti.

Without it, and without ``ganeti_fingerprint``, those count that the system trusts. The certificate
must be for the host of ``ganeti_url``.
""",
    ),
    cfg.StrOpt(
        "ganeti_fingerprint",
        help="""
The SHA-256 of the certificate that Ganeti has, as 64 hexadecimal digits, with or without colons.

This is for the certificate that Ganeti makes itself, which is for no host in particular: it is
trusted whoever vouches for it and whatever host it is for, and no other one is. It stands without
``ganeti_ca``.
""",
    ),
    cfg.Opt(
        "ganeti_connect_timeout",
        type=FiniteFloat(min=0.1),
        default=5.0,
        help="""
How many seconds Ganeti may take to accept a connection.
""",
    ),
    cfg.Opt(
        "ganeti_timeout",
        type=FiniteFloat(min=0.1),
        default=45.0,
        help="""
How many seconds Ganeti may take to answer.

After 30 seconds it says by itself that a part of it does not answer. With less, nobody knows that.
""",
    ),
    cfg.Opt(
        "ganeti_instance",
        type=CreationParameters(),
        sample_default='{"os_type": "noop", "disk_template": "plain", "disks": [{"size": 1024}], '
        '"nics": [{}], "start": false}',
        help="""
What instances are made of that are created through the service, as a JSON object.

It has the parameters of ``POST /2/instances`` of Ganeti's remote API, without the name and the
tags. ``mode`` is ``create``, and ``name_check`` and ``ip_check`` are ``false``, unless it says
otherwise. Without this option nothing is created.
""",
    ),
]


_OPTS = [*_plugin_opts, *_nova_opts, *_scheduler_opts]


def register(conf: cfg.ConfigOpts | None) -> Any:
    """Registers all options and returns their group; None stands for the global configuration."""
    conf = cfg.CONF if conf is None else conf
    conf.register_opts(_OPTS, group=GROUP)
    return conf[GROUP]


def register_tags(conf: cfg.ConfigOpts | None) -> Any:
    """Registers the options of tags and returns their group."""
    conf = cfg.CONF if conf is None else conf
    conf.register_opts(_tags_opts, group=TAGS_GROUP)
    return conf[TAGS_GROUP]


class Latest:
    """The value of an option that may change at run time.

    A bad value stops the start. At run time, the last good one counts, and the log says so.
    """

    def __init__(self, group: Any, name: str) -> None:
        self._group = group
        self._name = name
        self._good = getattr(group, name)
        self._complaint = ""

    def __call__(self) -> Any:
        try:
            self._good = getattr(self._group, self._name)
        except cfg.ConfigFileValueError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                LOG.error("%s; %r stays in force", error, self._good)
        return self._good


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """What oslo-config-generator and the documentation ask for."""
    return [(GROUP, _OPTS), (TAGS_GROUP, _tags_opts)]
