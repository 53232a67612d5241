"""Nova's request filters: what they add to a request, in Nova's order.

The filters for networks and PCI devices are left out, because no API shows what they read.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from steelyard import errors
from steelyard.analysis.why.rebuilding import releases
from steelyard.analysis.why.rebuilding.releases import NovaInUse
from steelyard.analysis.why.rebuilding.stated import Origin, RequestFails, Stated
from steelyard.cloud import Aggregate
from steelyard.cloud.wanted import Source
from steelyard.traits import TraitQuery

_REQUIRED = "required"
_TENANT_KEY = "filter_tenant_id"
_ZONE_KEY = "availability_zone"
_TRAIT_KEY = "trait:"
# The image properties that Nova turns into traits, with the prefixes of the traits.
_PREFIXES = {
    "hw_cdrom_bus": "COMPUTE_STORAGE_BUS",
    "hw_disk_bus": "COMPUTE_STORAGE_BUS",
    "hw_video_model": "COMPUTE_GRAPHICS_MODEL",
    "hw_vif_model": "COMPUTE_NET_VIF_MODEL",
    "hw_architecture": "HW_ARCH",
    "hw_emulation_architecture": "COMPUTE_ARCH",
    "hw_viommu_model": "COMPUTE_VIOMMU",
}
_SOUND_MODELS = ("sb16", "es1370", "pcspk", "ac97", "ich6", "ich9", "usb", "virtio")
_ENCRYPTION_FORMATS = ("plain", "luks", "luksv2")
_SECRET_SECURITIES = ("user", "host", "deployment")
_OWNER = "OWNER_NOVA"


@dataclasses.dataclass(frozen=True, slots=True)
class RootTrait:
    """A trait that the root provider must have, or must not have."""

    trait: str
    origin: Origin
    required: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class InAggregates:
    """Aggregates of which one must have the provider, or none may have it."""

    uuids: frozenset[str]
    text: str
    origin: Origin
    wanted: bool = True


Addition = RootTrait | InAggregates


class RequestFilters:
    """The request filters of one Nova, for one wanted server.

    ``aggregates`` is None if they cannot be read. ``required_traits`` are those that the flavor and
    the image require.
    """

    def __init__(
        self,
        stated: Stated,
        aggregates: Sequence[Aggregate] | None,
        required_traits: frozenset[str],
        nova: NovaInUse,
    ) -> None:
        self._stated = stated
        self._aggregates = aggregates
        self._required_traits = required_traits
        self._nova = nova

    def additions(self) -> Iterator[Addition]:
        """Yield all additions; raise RequestFails if a filter ends the request."""
        for request_filter in (
            self._tenant,
            self._zone,
            self._image_type,
            self._disabled_computes,
            self._isolated_aggregates,
            self._image_metadata,
            self._accelerators,
            self._packed_virtqueue,
            self._routed_networks,
            self._ephemeral_encryption,
            self._virtio_sound,
            self._tpm_secret,
            self._owner,
        ):
            yield from request_filter()

    def _tenant(self) -> Iterator[Addition]:
        switches, project = self._nova.switches, self._stated.wanted.project
        option = "[scheduler] limit_tenants_to_placement_aggregate"
        if not switches.limit_tenants_to_placement_aggregate:
            return
        if not project:
            self._assume(
                f"the request needs no aggregate of its project, though {option} is set; name the "
                f"project with --project"
            )
            return
        uuids = self._uuids_of(
            "the aggregates of the project",
            lambda metadata: any(
                key.startswith(_TENANT_KEY) and value == project for key, value in metadata.items()
            ),
        )
        if uuids:
            yield InAggregates(
                uuids,
                f"aggregate of the project {project!r}",
                Origin(f"{option}, and aggregates with {_TENANT_KEY!r}", self._nova.observed),
            )
        elif uuids is not None and switches.placement_aggregate_required_for_tenants:
            raise RequestFails(
                f"no aggregate has {_TENANT_KEY!r} = {project!r}, and [scheduler] "
                f"placement_aggregate_required_for_tenants is set (Nova: No hosts available for "
                f"tenant)"
            )

    def _zone(self) -> Iterator[Addition]:
        wanted, switches = self._stated.wanted, self._nova.switches
        zone = switches.zone_of(wanted)
        if not zone:
            if switches.assumed and switches.uses_default_zone(wanted):
                option = "[DEFAULT] default_schedule_zone"
                self._assume(f"no availability zone applies by default: {option} is not set")
            return
        what = f"availability zone {zone!r}"
        uuids = self._uuids_of(
            f"the aggregates of the {what}", lambda metadata: metadata.get(_ZONE_KEY) == zone
        )
        if uuids:
            if wanted.availability_zone:
                origin = Origin(f"requested {what}", self._stated.source("availability_zone"))
            else:
                origin = Origin("[DEFAULT] default_schedule_zone", self._nova.observed)
            yield InAggregates(uuids, what, origin)

    def _image_type(self) -> Iterator[Addition]:
        wanted, option = self._stated.wanted, "[scheduler] query_placement_for_image_type_support"
        if not self._nova.switches.query_placement_for_image_type_support or wanted.from_volume:
            return
        if not wanted.disk_format:
            self._assume(f"no trait for the image's format is required, though {option} is set")
            return
        trait = f"COMPUTE_IMAGE_TYPE_{wanted.disk_format.upper()}"
        origin = Origin(
            f"disk format {wanted.disk_format!r} of the image, {option}",
            self._stated.source("disk_format"),
        )
        if self._is_standard(trait, origin.text):
            yield RootTrait(trait, origin)

    def _disabled_computes(self) -> Iterator[Addition]:
        origin = Origin("Nova itself, to leave out disabled hosts", self._nova.observed)
        yield RootTrait("COMPUTE_STATUS_DISABLED", origin, required=False)

    def _isolated_aggregates(self) -> Iterator[Addition]:
        if not self._nova.switches.enable_isolated_aggregate_filtering:
            return
        missing: set[str] = set()

        def is_isolated(metadata: dict[str, str]) -> bool:
            traits = {
                key.removeprefix(_TRAIT_KEY)
                for key, value in metadata.items()
                if key.startswith(_TRAIT_KEY) and value == _REQUIRED
            }
            missing.update(traits - self._required_traits)
            return bool(traits - self._required_traits)

        uuids = self._uuids_of("the isolated aggregates", is_isolated)
        if uuids:
            yield InAggregates(
                uuids,
                f"no aggregate that is isolated by {', '.join(sorted(missing))}",
                Origin("[scheduler] enable_isolated_aggregate_filtering", self._nova.observed),
                wanted=False,
            )

    def _image_metadata(self) -> Iterator[Addition]:
        if not self._nova.switches.image_metadata_prefilter:
            return
        found = []
        for key, prefix in _PREFIXES.items():
            if key in self._stated.properties:
                value = self._stated.properties[key].replace("-", "_").upper()
                origin = self._stated.image_property(key)
                found.append(RootTrait(f"{prefix}_{value}", origin))
        # One unknown trait ends Nova's filter, so it adds none of the others either.
        are_standard = [self._is_standard(each.trait, each.origin.text) for each in found]
        if all(are_standard):
            yield from found

    def _accelerators(self) -> Iterator[Addition]:
        key = "accel:device_profile"
        profile = self._stated.specs.get(key)
        if profile:
            yield RootTrait("COMPUTE_ACCELERATORS", self._stated.spec(key))
            self._nova.not_known[f"the resources of the device profile {profile!r}"] = None

    def _packed_virtqueue(self) -> Iterator[Addition]:
        if not self._nova.release.may_be(releases.CARACAL):
            return
        trait = "COMPUTE_NET_VIRTIO_PACKED"
        if self._stated.flag("virtio_packed_ring") and self._nova.sends(releases.CARACAL, trait):
            yield RootTrait(trait, self._stated.origin("virtio_packed_ring"))

    def _routed_networks(self) -> Iterator[Addition]:
        if self._nova.switches.query_placement_for_routed_network_aggregates:
            self._nova.not_known["the aggregates of routed networks"] = None
        yield from ()

    def _ephemeral_encryption(self) -> Iterator[Addition]:
        stated, trait = self._stated, "COMPUTE_EPHEMERAL_ENCRYPTION"
        if not stated.flag("ephemeral_encryption"):
            return
        yield RootTrait(trait, stated.origin("ephemeral_encryption"))
        key = "ephemeral_encryption_format"
        form = stated.agreed(key, _ENCRYPTION_FORMATS)
        if form:
            yield RootTrait(f"{trait}_{form.upper()}", stated.origin(key))

    def _virtio_sound(self) -> Iterator[Addition]:
        if not self._nova.release.may_be(releases.FLAMINGO):
            return
        trait = "COMPUTE_SOUND_MODEL_VIRTIO"
        model = self._stated.agreed("sound_model", _SOUND_MODELS)
        if model == "virtio" and self._nova.sends(releases.FLAMINGO, trait):
            yield RootTrait(trait, self._stated.origin("sound_model"))

    def _tpm_secret(self) -> Iterator[Addition]:
        stated, key = self._stated, "hw:tpm_secret_security"
        if all(value is None for value in stated.both("tpm_version")):
            return
        if not self._nova.release.may_be(releases.GAZPACHO):
            return
        security = stated.specs.get(key) or _SECRET_SECURITIES[0]
        if security not in _SECRET_SECURITIES:
            raise RequestFails(
                f"{stated.spec(key).text}: TPM secret security {security!r} is not supported"
            )
        trait = f"COMPUTE_SECURITY_TPM_SECRET_SECURITY_{security.upper()}"
        if self._nova.sends(releases.GAZPACHO, trait):
            given = bool(stated.specs.get(key))
            yield RootTrait(trait, stated.spec(key) if given else stated.origin("tpm_version"))

    def _owner(self) -> Iterator[Addition]:
        # If the release is not known, the hosts may not have the trait, and a wrong demand would
        # reject them all.
        if self._nova.release.is_surely(releases.HIBISCUS):
            self._assume(
                f"all nova-compute services are of release 2026.2 or newer, so Nova requests the "
                f"trait {_OWNER}"
            )
            yield RootTrait(
                _OWNER,
                Origin(
                    "Nova itself, if all nova-compute services are of release 2026.2 or newer",
                    Source.ASSUMED,
                ),
            )

    def _assume(self, text: str) -> None:
        self._nova.assumptions[text] = None

    def _uuids_of(self, what: str, has: Callable[[dict[str, str]], bool]) -> frozenset[str] | None:
        """Return the UUIDs of the aggregates with such metadata; None if they are not known."""
        if self._aggregates is None:
            self._assume(f"{what} are left out, because aggregates cannot be read")
            return None
        found = [each for each in self._aggregates if has(dict(each.metadata))]
        if not all(each.uuid for each in found):
            self._assume(f"{what} are left out, because their UUIDs are not known")
            return None
        return frozenset(each.uuid for each in found)

    def _is_standard(self, trait: str, origin: str) -> bool:
        """Return whether this is a standard trait.

        Nova ignores the others, and a note says so. So does one if the list of standard traits is
        not installed.
        """
        try:
            if not any(TraitQuery(frozenset([trait])).unknown()):
                return True
        except errors.InvalidTrait:
            pass  # a malformed name is no standard one either
        except errors.MissingExtra as error:
            self._nova.not_known[f"whether Nova requires the trait {trait} ({origin}): {error}"] = (
                None
            )
            return False
        self._nova.ignored[f"Nova ignores {origin}: no standard trait {trait!r}"] = None
        return False
