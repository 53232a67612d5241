"""Connections to clouds in clouds.yaml, through openstacksdk."""

import contextlib
from collections.abc import Iterator
from typing import Any

import openstack
import yaml
from keystoneauth1 import exceptions
from keystoneauth1.adapter import Adapter

import steelyard
from steelyard import errors
from steelyard.clients.cloud_clients import CloudClients
from steelyard.clients.compute import Compute
from steelyard.clients.image import Images
from steelyard.clients.placement import SERVICE_TYPE, Placement
from steelyard.clients.sessions import reason
from steelyard.clients.volume import Volumes
from steelyard.text import spelling

_SECONDS = 60
_RETRIES = {
    "connect_retries": 2,
    "status_code_retries": 2,
    "retriable_status_codes": [429, 502, 503, 504],
}
"""Retries of requests that only read, unless clouds.yaml sets others."""


class Connection:
    """A connection to one cloud. Its errors are errors of steelyard."""

    def __init__(self, cloud: str) -> None:
        self._cloud = cloud
        with self._explained():
            self._connection = _connect(cloud)

    def placement(self) -> Placement:
        """Return a client of the cloud's Placement."""
        with self._explained():
            return Placement(self._connection.placement)

    def adapter(self, service_type: str) -> Adapter:
        """Return an adapter for a service of this type, with the credentials in clouds.yaml."""
        with self._explained():
            return _adapter(self._connection.config, service_type)

    def compute_and_placement(self) -> tuple[Compute, Placement | None]:
        """Return clients of Nova and Placement for reading; None for a missing Placement.

        Raises ServiceError if the catalog lists no compute service.
        """
        with self._explained():
            config = self._connection.config
            compute = _reading(config, "compute", min_version="2", max_version="2.latest")
            placement = _reading(config, SERVICE_TYPE)
            if not _in_catalog(compute):
                raise errors.ServiceError(
                    f"--os-cloud {self._cloud}: the service catalog lists no compute service for "
                    f"this region and interface"
                )
            return Compute(compute), Placement(placement) if _in_catalog(placement) else None

    def clients(self) -> CloudClients:
        """Return clients of all services that a request for a server involves, for reading.

        Raises ServiceError if the catalog lists no compute service.
        """
        compute, placement = self.compute_and_placement()
        with self._explained():
            images = self._versioned("image", "2")
            volumes = self._versioned("block-storage", "3")
        return CloudClients(
            compute,
            placement,
            None if images is None else Images(images),
            None if volumes is None else Volumes(volumes),
        )

    def _versioned(self, service_type: str, version: str) -> Adapter | None:
        """Return an adapter for this major version; None if the catalog lacks the service.

        The adapter requests the service's versions when it is used.
        """
        config = self._connection.config
        if not _in_catalog(_reading(config, service_type)):
            return None
        return _reading(config, service_type, min_version=version, max_version=f"{version}.latest")

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn the errors of openstacksdk and keystoneauth1 into errors of steelyard."""
        try:
            yield
        except openstack.exceptions.SDKException as error:
            raise errors.BadRequest(f"--os-cloud {self._cloud}: {error}") from error
        except exceptions.ClientException as error:
            raise errors.ServiceError(f"--os-cloud {self._cloud}: {reason(error)}") from error


def _reading(config: Any, service_type: str, **versions: Any) -> Adapter:
    """Return an adapter for reading, with a timeout and retries."""
    session = config.get_session()
    if session.timeout is None:
        session.timeout = _SECONDS
    return _adapter(config, service_type, **_retries(config, service_type), **versions)


def _retries(config: Any, service_type: str) -> dict[str, Any]:
    # Older versions of openstacksdk lack some of these attributes and return None for them.
    readers = {name: getattr(config, f"get_{name}") for name in _RETRIES}
    try:
        values = {name: read and read(service_type) for name, read in readers.items()}
    except (TypeError, ValueError) as error:
        raise errors.BadRequest(
            f"invalid {', '.join(_RETRIES)} in clouds.yaml: expected whole numbers ({error})"
        ) from error
    return {name: _RETRIES[name] if each is None else each for name, each in values.items()}


def _adapter(config: Any, service_type: str, **more: Any) -> Adapter:
    """Return an adapter of keystoneauth1.

    Unlike the proxies of openstacksdk, it supports services unknown to openstacksdk, and several
    threads can use it.
    """
    return Adapter(
        config.get_session(),
        service_type=config.get_service_type(service_type),
        interface=config.get_interface(service_type),
        region_name=config.get_region_name(service_type),
        endpoint_override=config.get_endpoint(service_type),
        client_name="steelyard",
        client_version=steelyard.__version__,
        **more,
    )


def _in_catalog(adapter: Adapter) -> bool:
    """Return whether the catalog lists the adapter's service."""
    try:
        return adapter.get_endpoint() is not None
    except exceptions.CatalogException:
        return False


def _connect(cloud: str) -> Any:
    try:
        return openstack.connect(cloud=cloud)
    except openstack.exceptions.ConfigException as error:
        found = openstack.config.OpenStackConfig()
        if found.config_filename is None:
            raise errors.BadRequest(
                f"--os-cloud {cloud}: no clouds.yaml in the current directory, ~/.config/openstack "
                f"or /etc/openstack; write one there, or name one in the environment variable "
                f"OS_CLIENT_CONFIG_FILE"
            ) from error
        names = found.get_cloud_names()
        if cloud in names:
            raise
        raise errors.BadRequest(
            f"--os-cloud {cloud}: clouds.yaml has no cloud {cloud!r}{spelling.near(cloud, names)}",
            cloud,
        ) from error
    except (AttributeError, TypeError, yaml.YAMLError) as error:
        # openstacksdk raises these for a malformed file; older versions raise YAMLError for invalid
        # YAML.
        raise errors.BadRequest(
            f"--os-cloud {cloud}: clouds.yaml, or another file that openstacksdk reads with it, is "
            f"malformed ({' '.join(str(error).split())}); expected a mapping of names below "
            f"'clouds'"
        ) from error
