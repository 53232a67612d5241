"""Resources and traits that a flavor and an image request from Placement, as Nova reads them.

Nova ignores malformed extra specs for Placement, so they are only noted.
"""

import collections
import re
from collections.abc import Iterator

from steelyard.analysis.why.rebuilding import releases
from steelyard.analysis.why.rebuilding.cpus import HYPERTHREADING, CPUs
from steelyard.analysis.why.rebuilding.stated import Origin, RequestFails, Stated, joined
from steelyard.resources import STANDARD_CLASSES, RequestKey
from steelyard.traits.query import CUSTOM

GROUP_POLICY = "group_policy"
_POLICIES = ("none", "isolate")

_MEMORY_TRAITS = {
    "amd-sev": "HW_CPU_X86_AMD_SEV",
    "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES",
    "amd-sev-snp": "HW_CPU_X86_AMD_SEV_SNP",
    "intel-tdx": "HW_CPU_X86_INTEL_TDX",
}
_DEFAULT_MEMORY_MODEL = "amd-sev"
_OLDER_MEMORY_MODELS = 2  # the first ones, which Nova knew before 2026.2
_TPM_VERSIONS = {"1.2": "COMPUTE_SECURITY_TPM_1_2", "2.0": "COMPUTE_SECURITY_TPM_2_0"}
_TPM_MODELS = {"tpm-tis": "COMPUTE_SECURITY_TPM_TIS", "tpm-crb": "COMPUTE_SECURITY_TPM_CRB"}
_ADDRESS_SPACES = {
    "passthrough": "COMPUTE_ADDRESS_SPACE_PASSTHROUGH",
    "emulate": "COMPUTE_ADDRESS_SPACE_EMULATED",
}

Trait = tuple[str, str, bool]
"""The suffix of a group, a trait, and whether it is required or else forbidden."""


class FlavorAndImage:
    """The groups of a request for the flavor and the image, without the request filters.

    Without ``cpus``, the request is the second one of Nova, which ignores CPU policies.
    """

    def __init__(self, stated: Stated, cpus: CPUs | None, nova: releases.NovaInUse) -> None:
        self.amounts: dict[tuple[str, str], tuple[int, Origin]] = {}
        """The amounts with their origins, by suffix and resource class; none is 0."""
        self.traits: dict[Trait, Origin] = {}
        self.policy: str | None = None
        """The group policy, ``none`` or ``isolate``; None without one."""
        self._stated = stated
        self._nova = nova
        self._read_extra_specs()
        for trait in sorted(stated.image_traits):
            self._add_trait(trait, stated.image_trait(trait))
        if cpus is not None:
            for name, amount in cpus.amounts.items():
                self.amounts["", name] = amount
            if cpus.hyperthreading is not None:
                required, origin = cpus.hyperthreading
                self._add_trait(HYPERTHREADING, origin, required=required)
        self._add_sizes()
        self._add_constraints()
        self.amounts = {key: found for key, found in self.amounts.items() if found[0]}

    @property
    def required_traits(self) -> frozenset[str]:
        """The required traits of all groups."""
        return frozenset(trait for _, trait, required in self.traits if required)

    @property
    def suffixes(self) -> frozenset[str]:
        """The suffixes of the groups that have one."""
        keys = [suffix for suffix, _ in self.amounts] + [suffix for suffix, _, _ in self.traits]
        return frozenset(filter(None, keys))

    @property
    def overlapping(self) -> bool:
        """Whether a group with a suffix requests a class that the one without requests too."""
        plain = {name for suffix, name in self.amounts if not suffix}
        return any(suffix and name in plain for suffix, name in self.amounts)

    def _add_trait(
        self, trait: str, origin: Origin, suffix: str = "", *, required: bool = True
    ) -> None:
        key = suffix, trait, required
        self.traits[key] = joined(self.traits[key], origin) if key in self.traits else origin

    def _read_extra_specs(self) -> None:
        for key, value in self._stated.specs.items():
            origin = self._stated.spec(key)
            if key == GROUP_POLICY:
                if value in _POLICIES:
                    self.policy = value
                else:
                    self._ignore(origin, value, "expected 'none' or 'isolate'")
                continue
            found = RequestKey.parse(key)
            if found is None:
                continue
            if found.kind == "trait":
                if value in ("required", "forbidden"):
                    self._add_trait(found.name, origin, found.suffix, required=value == "required")
                else:
                    self._ignore(origin, value, "expected 'required' or 'forbidden'")
                continue
            amount = _amount(value)
            if not found.name.startswith(CUSTOM) and found.name not in STANDARD_CLASSES:
                self._ignore(origin, value, "unknown resource class")
            elif amount is None:
                self._ignore(origin, value, "expected a whole number, at least 0")
            else:
                self.amounts[found.suffix, found.name] = amount, origin

    def _ignore(self, origin: Origin, value: str, why: str) -> None:
        self._nova.ignored[f"Nova ignores {origin.text} = {value!r}: {why}"] = None

    def _add_sizes(self) -> None:
        """Add the sizes of the flavor, unless extra specs replace them."""
        flavor, origin = self._stated.wanted.flavor, self._stated.flavor_itself()
        stated = {name for _, name in self.amounts}
        if not {"VCPU", "PCPU"} & stated:
            self.amounts["", "VCPU"] = flavor.vcpus, origin
        if "MEMORY_MB" not in stated:
            self.amounts["", "MEMORY_MB"] = flavor.memory_mb, origin
        if "DISK_GB" not in stated:
            self.amounts["", "DISK_GB"] = flavor.root_gb, origin

    def _add_constraints(self) -> None:
        self._add_memory_encryption()
        for name, amount in _pmem(self._stated).items():
            self.amounts["", name] = amount, self._stated.spec("hw:pmem")
        for trait, origin in (*self._tpm(), *self._others()):
            self._add_trait(trait, origin)

    def _add_memory_encryption(self) -> None:
        stated, nova = self._stated, self._nova
        if not stated.flag("mem_encryption"):
            return
        origin = stated.origin("mem_encryption")
        self.amounts["", "MEM_ENCRYPTION_CONTEXT"] = 1, origin
        model = None
        if nova.release.may_be(releases.FLAMINGO):
            models = [*_MEMORY_TRAITS]
            if not nova.release.may_be(releases.HIBISCUS):
                models = models[:_OLDER_MEMORY_MODELS]
            model = stated.agreed("mem_encryption_model", models)
            if model is not None:
                origin = joined(origin, stated.origin("mem_encryption_model"))
        model = model or _DEFAULT_MEMORY_MODEL
        newer = model in [*_MEMORY_TRAITS][_OLDER_MEMORY_MODELS:]
        _check_memory_encryption(stated, model, origin, stateless=newer)
        trait = _MEMORY_TRAITS[model]
        if nova.sends(releases.HIBISCUS if newer else releases.FLAMINGO, trait):
            self._add_trait(trait, origin)

    def _tpm(self) -> Iterator[tuple[str, Origin]]:
        stated = self._stated
        version = stated.agreed("tpm_version", tuple(_TPM_VERSIONS))
        if version is None:
            return
        model = stated.agreed("tpm_model", tuple(_TPM_MODELS)) or "tpm-tis"
        origin = stated.origin("tpm_version")
        if model == "tpm-crb" and version != "2.0":
            raise RequestFails(
                f"{stated.origin('tpm_model').text} = 'tpm-crb' needs TPM version '2.0', but "
                f"{origin.text} = {version!r}"
            )
        yield _TPM_VERSIONS[version], origin
        if self._nova.sends(releases.DALMATIAN, _TPM_MODELS[model]):
            given = any(value is not None for value in stated.both("tpm_model"))
            yield _TPM_MODELS[model], stated.origin("tpm_model") if given else origin

    def _others(self) -> Iterator[tuple[str, Origin]]:
        stated = self._stated
        policies = ("required", "legacy", "preferred", "socket")
        if stated.agreed("pci_numa_affinity_policy", policies) == "socket":
            yield "COMPUTE_SOCKET_PCI_NUMA_AFFINITY", stated.origin("pci_numa_affinity_policy")
        boots = ("required", "disabled", "optional")
        if stated.agreed("secure_boot", boots, prefix="os") == "required":
            yield "COMPUTE_SECURITY_UEFI_SECURE_BOOT", stated.origin("secure_boot", "os")
        mode = stated.agreed("maxphysaddr_mode", tuple(_ADDRESS_SPACES))
        if mode is not None:
            yield _ADDRESS_SPACES[mode], stated.origin("maxphysaddr_mode")
        yield from self._stateless_firmware()

    def _stateless_firmware(self) -> Iterator[tuple[str, Origin]]:
        stated, nova = self._stated, self._nova
        key, trait = "hw_firmware_stateless", "COMPUTE_SECURITY_STATELESS_FIRMWARE"
        if not stated.image_flag(key) or not nova.release.may_be(releases.DALMATIAN):
            return
        origin = stated.image_property(key)
        need = "it needs image property 'hw_firmware_type' = 'uefi'"
        if stated.properties.get("hw_firmware_type") == "uefi":
            if nova.sends(releases.DALMATIAN, trait):
                yield trait, origin
        elif nova.release.may_be(releases.HIBISCUS):
            nova.ignored[f"Nova ignores {origin.text}: {need}"] = None
        elif nova.release.is_surely(releases.DALMATIAN):
            raise RequestFails(f"{origin.text}: {need}")


def _amount(text: str) -> int | None:
    """Return the amount that Nova sends; None if it ignores the text.

    Nova also sends amounts that are too great for Placement.
    """
    try:
        amount = int(text)
    except ValueError:
        return None
    return amount if amount >= 0 else None


def _check_memory_encryption(
    stated: Stated, model: str, origin: Origin, *, stateless: bool
) -> None:
    """Raise RequestFails unless the image has the properties that the encryption needs."""
    machine = stated.properties.get("hw_machine_type")
    for is_met, need in (
        (stated.properties.get("hw_firmware_type") == "uefi", "'hw_firmware_type' = 'uefi'"),
        (machine is None or "q35" in machine, "a q35 machine in 'hw_machine_type'"),
        (
            not stateless or stated.image_flag("hw_firmware_stateless"),
            "'hw_firmware_stateless' = 'true'",
        ),
        (
            model != "intel-tdx" or stated.properties.get("hw_video_model") == "none",
            "'hw_video_model' = 'none'",
        ),
    ):
        if not is_met:
            raise RequestFails(f"{origin.text}: {model} needs image property {need}")


def _pmem(stated: Stated) -> dict[str, int]:
    """Return the amounts of persistent memory, by resource class."""
    labels = filter(None, map(str.strip, stated.specs.get("hw:pmem", "").split(",")))
    names = (re.sub("[^0-9A-Za-z]+", "_", f"PMEM_NAMESPACE_{label}") for label in labels)
    return dict(collections.Counter(CUSTOM + name.upper() for name in names))
