"""The two WSGI applications that the benchmark ``http`` serves, each made in a worker of gunicorn.

DATABASE in the environment is the URL of the database.
"""

import os
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from placement import conf as placement_conf
from placement import db_api, deploy

from benchmarks.consumers import usages
from steelyard import conf as options
from steelyard.consumers import ConsumerStore
from steelyard.consumers.http.api import make_application


def ours() -> Any:
    """Return the HTTP API of consumers, which trusts this machine as a proxy."""
    conf = cfg.ConfigOpts()
    options.register_consumers(conf)
    conf.set_override("trusted_proxies", ["127.0.0.1"], group=options.CONSUMERS_GROUP)
    return make_application(ConsumerStore(os.environ["DATABASE"]), conf)


def placements() -> Any:
    """Return a Placement that takes tokens for roles, without Keystone."""
    conf = cfg.ConfigOpts()
    placement_conf.register_opts(conf)
    conf.set_override("auth_strategy", "noauth2", group="api")
    conf.set_override("connection", os.environ["DATABASE"], group="placement_database")
    conf([], default_config_files=[], default_config_dirs=[])
    db_api.configure(conf)
    app = deploy.loadapp(conf)
    engine = db_api.get_placement_engine()
    if engine.dialect.name == "postgresql":
        sa.event.listen(engine, "before_cursor_execute", usages.correct, retval=True)
    return app
