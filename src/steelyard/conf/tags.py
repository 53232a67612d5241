"""The options of ``[steelyard_tags]``."""

from oslo_config import cfg

from steelyard.conf.types import (
    BrokerName,
    Count,
    CreationParameters,
    FiniteFloat,
    ListenAddress,
)

TAGS_GROUP = "steelyard_tags"

TAGS_OPTS = [
    cfg.StrOpt(
        "connection",
        secret=True,
        sample_default="postgresql+psycopg://steelyard:PASSWORD@db.example.org/tags",
        help="""
The SQLAlchemy URL of the database of instances and tags.

If the URL has a password, restrict who may read the configuration file.
""",
    ),
    cfg.StrOpt(
        "backend",
        default="memory",
        help="""
The backend that applies tags.

``memory`` is for trials: it loses its tags when the process exits. ``ganeti`` is the Ganeti cluster
that the options beginning with ``ganeti_`` describe. Every name in the entry point group
``steelyard.tag_backends`` is accepted.

A database belongs to one backend. ``steelyard db upgrade --schema tags`` records the backend of
this option in the database, which then rejects writes for any other backend.
""",
    ),
    cfg.StrOpt(
        "user_prefix",
        default="cyclades:user:",
        help="""
The prefix of users' tags in the database and at the backend. Users never see it.

It must end in a colon. Do not change it while tags exist: they would no longer belong to users.
""",
    ),
    cfg.StrOpt(
        "system_prefix",
        default="cyclades:system:",
        help="""
The prefix of the service's own tags.

It must end in a colon. Neither of the two prefixes may begin with the other.
""",
    ),
    cfg.MultiStrOpt(
        "incompatible",
        default=[],
        sample_default=["high-availability, high-performance"],
        help="""
A group of incompatible tags, separated by commas. An instance has at most one tag of each group.

The option may be repeated for more groups. A request to add a tag that is incompatible with another
tag of the instance, or of the request, fails and changes nothing.
""",
    ),
    cfg.Opt(
        "instances_per_project",
        type=Count(min=0),
        default=0,
        help="""
The greatest number of registered instances of a project. 0 means no limit.

A request to create or register more fails with 403 and changes nothing. Instances that are
registered already stay.
""",
    ),
    cfg.ListOpt(
        "trusted_proxies",
        default=[],
        sample_default="127.0.0.1, 10.1.0.0/16",
        help="""
Addresses and networks of proxies that are trusted to set X-Project-Id and X-User-Id.

Requests from other addresses are rejected. With keystonemiddleware in the same process,
leave the list empty: its headers are always trusted.
""",
    ),
    cfg.ListOpt(
        "system_proxies",
        default=[],
        help="""
The trusted proxies that may use the system's own tags, with the header ``X-Tag-Owner: system``.

List only addresses that forward no requests of users.
""",
    ),
    cfg.Opt(
        "max_body",
        type=Count(min=1024),
        default=65536,
        help="""
The size limit of a request's body in bytes. A larger request is rejected before it is read.
""",
    ),
    cfg.Opt(
        "request_timeout",
        type=FiniteFloat(min=1.0),
        default=90.0,
        help="""
The time limit, in seconds, of all calls to the backend for one HTTP request together.

While the database cannot record a job, a request takes up to 10 seconds longer. Set the timeouts
of gunicorn, proxies and clients to more than the sum.
""",
    ),
    cfg.Opt(
        "poll_interval",
        type=FiniteFloat(min=0.1),
        default=2.0,
        help="""
The interval, in seconds, at which unfinished jobs are polled.
""",
    ),
    cfg.StrOpt(
        "transport_url",
        secret=True,
        sample_default="amqp://steelyard:PASSWORD@mq.example.org/steelyard",
        help="""
The URL of the message broker for job outcomes: ``amqp://`` or, with TLS, ``amqps://``.

``steelyard tags watch`` and other programs publish outcomes there, and ``steelyard tags dispatch``
applies them. Without this option, ``steelyard tags watch`` applies outcomes itself.

The virtual host follows the last slash; ``%2F`` stands for the one called ``/``. If the URL has a
password, restrict who may read the configuration file.
""",
    ),
    cfg.Opt(
        "queue",
        type=BrokerName(
            r"^(?!amq\.)[A-Za-z0-9_.:-]{1,200}$",
            "1 to 200 of A-Z, a-z, 0-9, _, ., : and -, not beginning with 'amq.'",
        ),
        default="steelyard.tags",
        help="""
The queue of job outcomes. Malformed messages go to a second queue, with ``.dead`` appended to the
name.

Missing queues are created.
""",
    ),
    cfg.Opt(
        "exchange",
        type=BrokerName(r"^[A-Za-z0-9_.:-]{1,200}$", "1 to 200 of A-Z, a-z, 0-9, _, ., : and -"),
        sample_default="ganeti",
        help="""
The topic exchange to which ``steelyard tags dispatch`` binds the queue, for notifications of
Synnefo's ``snf-ganeti-eventd``, which publishes to the exchange ``ganeti`` by default.

A missing exchange is created. Without this option, the queue is not bound.
""",
    ),
    cfg.Opt(
        "routing_key",
        type=BrokerName(
            r"^[A-Za-z0-9_.:*#-]{1,255}$", "1 to 255 of A-Z, a-z, 0-9, _, ., :, *, # and -"
        ),
        default="ganeti.#.event.op",
        help="""
The pattern of routing keys with which the queue is bound to ``exchange``.

The second word of a key of ``snf-ganeti-eventd`` is the instance's name up to the first hyphen. To
receive the notifications of only one installation, set it: ``ganeti.snf.event.op``.
""",
    ),
    cfg.Opt(
        "prefetch",
        type=Count(min=1, max=65535),
        default=100,
        help="""
The number of unacknowledged outcomes that the broker sends to ``steelyard tags dispatch``.
""",
    ),
    cfg.Opt(
        "metrics_listen",
        type=ListenAddress(),
        sample_default="127.0.0.1:9781",
        help="""
The host and the port at which ``steelyard tags watch`` or ``steelyard tags dispatch`` answers
``GET /metrics`` and ``GET /health``.

Without this option, they listen nowhere. Several of these processes on one machine need different
ports: set this option on the command line, with ``--metrics-listen``. Everybody who can connect
can read the metrics.
""",
    ),
    cfg.Opt(
        "give_up_after",
        type=FiniteFloat(min=120.0),
        default=3600.0,
        help="""
The time, in seconds, after which an operation without a known job is ended.

The job is unknown if the backend did not answer in time, or if the process exited before it
recorded the job. The tags are then read from the backend.

The time must be longer than the backend can take to answer.
""",
    ),
    cfg.Opt(
        "reconcile_every",
        type=FiniteFloat(min=0.0),
        default=86400.0,
        help="""
The interval, in seconds, at which ``steelyard tags watch`` reconciles all instances.

0 disables periodic reconciliation. Reconciliations because of jobs that the backend no longer
lists still take place.
""",
    ),
    cfg.Opt(
        "marks_kept",
        type=FiniteFloat(min=3600.0),
        default=2592000.0,
        help="""
The time, in seconds, for which the last job that changed a tag is recorded.

During that time, a late outcome of an older job is ignored.
""",
    ),
    cfg.StrOpt(
        "ganeti_url",
        sample_default="https://ganeti.example.org:5080",
        help="""
The URL of the Ganeti cluster's remote API. It must be HTTPS.
""",
    ),
    cfg.StrOpt(
        "ganeti_user",
        help="""
The user name for Ganeti's remote API. The user must have write access.
""",
    ),
    cfg.StrOpt(
        "ganeti_password",
        secret=True,
        help="""
The password of the user in ``ganeti_user``.

Restrict who may read the configuration file.
""",
    ),
    cfg.StrOpt(
        "ganeti_ca",
        help="""
The PEM file of the CA certificates that are trusted to sign Ganeti's certificate.

Without this option and ``ganeti_fingerprint``, the CA certificates of the system are trusted.
Ganeti's certificate must be for the host in ``ganeti_url``.
""",
    ),
    cfg.StrOpt(
        "ganeti_fingerprint",
        help="""
The SHA-256 fingerprint of Ganeti's certificate: 64 hexadecimal digits, with or without colons.

Use it for the self-signed certificate that Ganeti creates, which names no host. Only the
certificate with this fingerprint is trusted, regardless of its issuer and host. Do not combine
this option with ``ganeti_ca``.
""",
    ),
    cfg.Opt(
        "ganeti_connect_timeout",
        type=FiniteFloat(min=0.1),
        default=5.0,
        help="""
The time limit, in seconds, for a connection to Ganeti.
""",
    ),
    cfg.Opt(
        "ganeti_timeout",
        type=FiniteFloat(min=0.1),
        default=45.0,
        help="""
The time limit, in seconds, for a response of Ganeti.

Set it to more than 30 seconds: Ganeti takes that long to report that one of its daemons does not
respond. One HTTP request causes several calls to Ganeti, which ``request_timeout`` limits together.
""",
    ),
    cfg.Opt(
        "ganeti_instance",
        type=CreationParameters(),
        sample_default='{"os_type": "noop", "disk_template": "plain", "disks": [{"size": 1024}], '
        '"nics": [{}], "start": false}',
        help="""
The parameters, as a JSON object, with which the service creates instances.

They are those of ``POST /2/instances`` of Ganeti's remote API, without the name and the tags.
``mode`` defaults to ``create``, ``name_check`` and ``ip_check`` default to ``false``. Without this
option, the service cannot create instances.
""",
    ),
]
