"""The options of ``[steelyard_consumers]``."""

from oslo_config import cfg

from steelyard.conf.types import Count

CONSUMERS_GROUP = "steelyard_consumers"

CONSUMERS_OPTS = [
    cfg.StrOpt(
        "connection",
        secret=True,
        sample_default="postgresql+psycopg://steelyard:PASSWORD@db.example.org/consumers",
        help="""
The SQLAlchemy URL of the database of consumers that the HTTP API serves.

If the URL has a password, restrict who may read the configuration file.
""",
    ),
    cfg.ListOpt(
        "trusted_proxies",
        default=[],
        sample_default="127.0.0.1, 10.1.0.0/16",
        help="""
Addresses and networks of proxies that are trusted to set X-Project-Id, X-User-Id and X-Roles.

Requests from other addresses are rejected. With keystonemiddleware in the same process,
leave the list empty: its headers are always trusted.
""",
    ),
    cfg.Opt(
        "max_body",
        type=Count(min=1024),
        default=1048576,
        help="""
The size limit of a request's body in bytes. A larger request is rejected before it is read.

One consumer takes some 400 bytes of a body.
""",
    ),
]
