"""The constraints of flavors and images that become traits and resources."""

from collections.abc import Mapping

import pytest

from steelyard.analysis.why.rebuilding.flavor_and_image import FlavorAndImage
from steelyard.analysis.why.rebuilding.releases import NovaInUse, Release
from steelyard.analysis.why.rebuilding.stated import RequestFails, Stated
from steelyard.analysis.why.switches import Switches
from steelyard.cloud import Flavor
from support.analysis.wanted_servers import wanted_server

RELEASE_2024_1 = "2.95"
RELEASE_2025_1 = "2.100"
RELEASE_2026_1 = "2.103"
RELEASE_2026_2 = "2.104"
UEFI = {"hw_firmware_type": "uefi"}
STATELESS = {**UEFI, "hw_firmware_stateless": "true"}


def read(
    extra_specs: Mapping[str, str], properties: Mapping[str, str], microversion: str
) -> tuple[FlavorAndImage, NovaInUse]:
    flavor = Flavor("m1", 4, 2048, 20, extra_specs)
    nova = NovaInUse(Release.of(microversion), Switches())
    stated = Stated(wanted_server(flavor, image_properties=properties))
    return FlavorAndImage(stated, None, nova), nova


def traits(
    extra_specs: Mapping[str, str],
    properties: Mapping[str, str] | None = None,
    microversion: str = RELEASE_2026_2,
) -> set[str]:
    return set(read(extra_specs, properties or {}, microversion)[0].required_traits)


ENCRYPTED = {"hw:mem_encryption": "true"}


@pytest.mark.parametrize(
    ("extra_specs", "properties", "expected"),
    [
        (ENCRYPTED, UEFI, {"HW_CPU_X86_AMD_SEV"}),
        ({**ENCRYPTED, "hw:mem_encryption_model": "amd-sev-es"}, UEFI, {"HW_CPU_X86_AMD_SEV_ES"}),
        (
            {**ENCRYPTED, "hw:mem_encryption_model": "amd-sev-snp"},
            STATELESS,
            {"HW_CPU_X86_AMD_SEV_SNP", "COMPUTE_SECURITY_STATELESS_FIRMWARE"},
        ),
        (
            {**ENCRYPTED, "hw:mem_encryption_model": "intel-tdx"},
            {**STATELESS, "hw_video_model": "none", "hw_machine_type": "pc-q35-8.2"},
            {"HW_CPU_X86_INTEL_TDX", "COMPUTE_SECURITY_STATELESS_FIRMWARE"},
        ),
        ({"hw:mem_encryption": "off"}, {}, set()),
        (
            {"hw:tpm_version": "2.0", "hw:tpm_model": "tpm-crb"},
            {},
            {"COMPUTE_SECURITY_TPM_2_0", "COMPUTE_SECURITY_TPM_CRB"},
        ),
        (
            {},
            {"hw_tpm_version": "1.2"},
            {"COMPUTE_SECURITY_TPM_1_2", "COMPUTE_SECURITY_TPM_TIS"},
        ),
        ({"hw:pci_numa_affinity_policy": "socket"}, {}, {"COMPUTE_SOCKET_PCI_NUMA_AFFINITY"}),
        ({"hw:pci_numa_affinity_policy": "legacy"}, {}, set()),
        ({}, {"os_secure_boot": "required"}, {"COMPUTE_SECURITY_UEFI_SECURE_BOOT"}),
        ({"os:secure_boot": "optional"}, {}, set()),
        ({"hw:maxphysaddr_mode": "emulate"}, {}, {"COMPUTE_ADDRESS_SPACE_EMULATED"}),
        ({}, STATELESS, {"COMPUTE_SECURITY_STATELESS_FIRMWARE"}),
        ({}, {"trait:CUSTOM_A": "required", "trait:CUSTOM_B": "forbidden"}, {"CUSTOM_A"}),
    ],
)
def test_constraints_require_traits(
    extra_specs: dict[str, str], properties: dict[str, str], expected: set[str]
) -> None:
    assert traits(extra_specs, properties) == expected


@pytest.mark.parametrize(
    ("extra_specs", "properties", "why"),
    [
        (ENCRYPTED, {}, "amd-sev needs image property 'hw_firmware_type' = 'uefi'"),
        (ENCRYPTED, {**UEFI, "hw_machine_type": "pc"}, "needs image property a q35 machine"),
        (ENCRYPTED, {**UEFI, "hw_mem_encryption": "false"}, "is 'true', but image property"),
        (
            {**ENCRYPTED, "hw:mem_encryption_model": "amd-sev-snp"},
            UEFI,
            "amd-sev-snp needs image property 'hw_firmware_stateless' = 'true'",
        ),
        (
            {**ENCRYPTED, "hw:mem_encryption_model": "intel-tdx"},
            STATELESS,
            "intel-tdx needs image property 'hw_video_model' = 'none'",
        ),
        ({**ENCRYPTED, "hw:mem_encryption_model": "odd"}, UEFI, "expected one of 'amd-sev'"),
        ({"hw:tpm_version": "2.0"}, {"hw_tpm_version": "1.2"}, "'2.0', but image property"),
        (
            {"hw:tpm_version": "1.2", "hw:tpm_model": "tpm-crb"},
            {},
            "'tpm-crb' needs TPM version '2.0'",
        ),
        ({"os:secure_boot": "perhaps"}, {}, "'os:secure_boot' = 'perhaps': expected one of"),
    ],
)
def test_contradictory_constraints_fail(
    extra_specs: dict[str, str], properties: dict[str, str], why: str
) -> None:
    with pytest.raises(RequestFails, match=why):
        traits(extra_specs, properties)


def test_memory_encryption_requests_a_context() -> None:
    found, _ = read(ENCRYPTED, UEFI, RELEASE_2026_2)
    assert found.amounts["", "MEM_ENCRYPTION_CONTEXT"][0] == 1


def test_persistent_memory_requests_its_classes() -> None:
    found, _ = read({"hw:pmem": "4GB, 16-GB,4GB,"}, {}, RELEASE_2026_2)
    pmem = {name: amount for (_, name), (amount, _) in found.amounts.items() if "PMEM" in name}
    assert pmem == {"CUSTOM_PMEM_NAMESPACE_4GB": 2, "CUSTOM_PMEM_NAMESPACE_16_GB": 1}


def test_older_releases_require_fewer_traits() -> None:
    specs = {**ENCRYPTED, "hw:mem_encryption_model": "odd", "hw:tpm_version": "2.0"}
    assert traits(specs, STATELESS, RELEASE_2024_1) == {"COMPUTE_SECURITY_TPM_2_0"}
    with pytest.raises(RequestFails, match="'amd-sev-snp': expected one of"):
        traits({**ENCRYPTED, "hw:mem_encryption_model": "amd-sev-snp"}, UEFI, RELEASE_2026_1)


def test_stateless_firmware_without_uefi_fails_before_it_was_ignored() -> None:
    properties = {"hw_firmware_stateless": "true"}
    assert traits({}, properties, RELEASE_2024_1) == set()
    with pytest.raises(RequestFails, match="needs image property 'hw_firmware_type'"):
        read({}, properties, RELEASE_2025_1)
    found, nova = read({}, properties, RELEASE_2026_2)
    assert not found.required_traits
    assert [*nova.ignored] == [
        "Nova ignores image property 'hw_firmware_stateless': it needs image property "
        "'hw_firmware_type' = 'uefi'"
    ]


def test_groups_with_a_suffix_are_found() -> None:
    specs = {"resources1:VCPU": "1", "trait_NET:CUSTOM_A": "required", "resources:VCPU": "1"}
    found, _ = read(specs, {}, RELEASE_2026_2)
    assert found.suffixes == {"1", "_NET"}
    assert found.overlapping
    assert not read({"resources1:VGPU": "1"}, {}, "")[0].overlapping
