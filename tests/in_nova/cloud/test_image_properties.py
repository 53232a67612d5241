"""The names and values of image properties are those of Nova's own code."""

import pytest
from nova import objects
from nova.objects import image_meta

from steelyard.cloud.image_properties import named_as_now

# One value that Nova accepts for each property, unless it accepts any text.
VALUES = {
    "architecture": "AMD64",
    "auto_disk_config": "1",
    "bdm_v2": "true",
    "bittorrent": "true",
    "cache_in_nova": "true",
    "hypervisor_type": "Xapi",
    "hypervisor_version_requires": ">=4.0",
    "ipxe_boot": "true",
    "vm_mode": "HV",
    "vmware_image_version": "1",
    "vmware_linked_clone": "true",
    "xenapi_device_id": "1",
    "xenapi_image_compression_level": "1",
    "xenapi_skip_agent_inject_files_at_boot": "true",
    "xenapi_skip_agent_inject_ssh": "true",
    "xenapi_use_agent": "true",
}
LISTS = ("block_device_mapping", "mappings")


@pytest.fixture(autouse=True, scope="module")
def _registered() -> None:
    objects.register_all()


def of_nova(properties: dict[str, str]) -> dict[str, str]:
    """Return the properties that Nova's own code reads."""
    found = image_meta.ImageMetaProps.from_dict(dict(properties))
    return {name: str(getattr(found, name)) for name in found.obj_what_changed()}


def test_older_names_are_those_of_nova() -> None:
    older = image_meta.ImageMetaProps._legacy_property_map
    assert {name: [*named_as_now({name: "text"})] for name in older} == {
        older_name: [name] for older_name, name in older.items()
    }


@pytest.mark.parametrize(
    "name", sorted(image_meta.ImageMetaProps._legacy_property_map.keys() - set(LISTS))
)
def test_value_under_an_older_name_is_the_one_of_nova(name: str) -> None:
    ours = named_as_now({name: VALUES.get(name, "text")})
    nova = of_nova({name: VALUES.get(name, "text")})
    assert {key: str(value).lower() for key, value in ours.items()} == {
        key: value.lower() for key, value in nova.items()
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hw_architecture", "x86_32P"),
        ("hw_emulation_architecture", "I586"),
        ("hw_scsi_model", "lsiLogicsas"),
        ("hw_scsi_model", "ParaVirtual"),
        ("hw_vif_model", "VirtualE1000"),
        ("hw_vif_model", "VirtualSriovEthernetCard"),
        ("hw_vm_mode", "PV"),
        ("hw_vm_mode", "baremetal"),
        ("img_hv_type", "QEMU"),
        ("os_type", "Linux"),
        ("vmware_adaptertype", "ide"),
        ("vmware_adaptertype", "lsiLogic"),
        ("vmware_adaptertype", ""),
    ],
)
def test_spelling_is_the_one_of_nova(name: str, value: str) -> None:
    assert named_as_now({name: value}) == of_nova({name: value})


def test_all_spellings_of_vif_models_are_those_of_nova() -> None:
    for value in objects.fields.VIFModel.LEGACY_VALUES:
        assert named_as_now({"hw_vif_model": value}) == of_nova({"hw_vif_model": value})
