"""A real Placement in this process, and its parser of query strings."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import jsonschema
import microversion_parse
import webob
from oslo_config import cfg
from oslo_db.sqlalchemy import enginefacade
from placement import conf as placement_conf
from placement import db_api, deploy, direct, lib, microversion, util
from placement.objects import resource_class, trait

from support.nova.kept_connections import kept_connections

TRAITS = [f"CUSTOM_{letter}" for letter in "ABCDE"]


@contextlib.contextmanager
def placement(url: str = "sqlite://") -> Iterator[Any]:
    """Yield a client of a Placement with the custom traits of TRAITS."""
    conf = cfg.ConfigOpts()
    placement_conf.register_opts(conf)
    conf.set_override("connection", url, group="placement_database")
    conf.set_override("sync_on_startup", True, group="placement_database")
    conf([], default_config_files=[], default_config_dirs=[])
    with _own_database(url), _own_formats(), _loaded_once(conf) as client:
        # Placement's groups share their overrides with all configurations, Nova's fixture's too.
        conf.clear_override("sync_on_startup", group="placement_database")
        conf.clear_override("connection", group="placement_database")
        for made in TRAITS:
            assert client.put(f"/traits/{made}", headers=at("1.6")).status_code == 201
        yield client


@contextlib.contextmanager
def _loaded_once(conf: Any) -> Iterator[Any]:
    """Yield a client of an application that is loaded once.

    PlacementDirect would load one for each request, and check for migrations each time.
    """
    made = direct.PlacementDirect(conf)
    app = deploy.loadapp(conf)
    made.app = lambda: app
    with made as client:
        yield client


@contextlib.contextmanager
def _own_database(url: str) -> Iterator[None]:
    """Replace the database of Placement, which keeps the first one of a process."""
    manager = enginefacade.transaction_context()
    manager.configure(connection=url)
    with kept_connections():
        engine = manager.writer.get_engine()
    restore = db_api.placement_context_manager.patch_factory(manager)
    trait._TRAITS_SYNCED = resource_class._RESOURCE_CLASSES_SYNCED = False
    try:
        yield
    finally:
        engine.dispose()
        restore()


def _own_formats() -> contextlib.AbstractContextManager[object]:
    """Restore jsonschema's format of UUIDs, which old releases of Nova replace."""
    checkers = jsonschema.FormatChecker.checkers
    return mock.patch.dict(
        checkers, uuid=jsonschema.Draft202012Validator.FORMAT_CHECKER.checkers["uuid"]
    )


def at(version: str) -> dict[str, str]:
    return {"OpenStack-API-Version": f"placement {version}"}


def request(query_string: str, version: str) -> Any:
    """Return the request as Placement's handlers get it."""
    made = webob.Request.blank(f"/?{query_string}")
    made.environ[microversion.MICROVERSION_ENVIRON] = microversion_parse.extract_version(
        {"openstack-api-version": f"placement {version}"}, "placement", microversion.VERSIONS
    )
    return made


Group = tuple[Any, ...]


def group(found: lib.RequestGroup) -> Group:
    """Return the fields of a group of Placement's in the order of RequestGroup."""
    return (
        found.resources,
        frozenset(map(frozenset, found.required_traits)),
        frozenset(found.forbidden_traits),
        frozenset(map(frozenset, found.member_of)),
        frozenset(found.forbidden_aggs),
        found.in_tree,
    )


def groups_of_candidates(query_string: str, version: str) -> tuple[dict[str, Group], Any]:
    found = request(query_string, version)
    whole = lib.RequestWideParams.from_request(found)
    groups = lib.RequestGroup.dict_from_request(found, whole)
    return {suffix: group(each) for suffix, each in groups.items()}, whole


def group_of_providers(query_string: str, version: str) -> Group:
    found = request(query_string, version)
    resources = found.GET.get("resources")
    required, forbidden = util.normalize_traits_qs_params(found)
    member_of, forbidden_aggs = util.normalize_member_of_qs_params(found)
    return group(
        lib.RequestGroup(
            resources=util.normalize_resources_qs_param(resources) if resources else {},
            required_traits=required,
            forbidden_traits=forbidden,
            member_of=member_of,
            forbidden_aggs=forbidden_aggs,
            in_tree=found.GET.get("in_tree"),
        )
    )
