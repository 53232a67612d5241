"""The properties of images, as Nova reads them."""

from collections.abc import Mapping

# Older names of properties, with the names of today.
_OLDER_NAMES = {
    "architecture": "hw_architecture",
    "auto_disk_config": "hw_auto_disk_config",
    "bdm_v2": "img_bdm_v2",
    "bittorrent": "img_bittorrent",
    "block_device_mapping": "img_block_device_mapping",
    "cache_in_nova": "img_cache_in_nova",
    "hypervisor_type": "img_hv_type",
    "hypervisor_version_requires": "img_hv_requested_version",
    "ipxe_boot": "hw_ipxe_boot",
    "mappings": "img_mappings",
    "owner_id": "img_owner_id",
    "root_device_name": "img_root_device_name",
    "vm_mode": "hw_vm_mode",
    "vmware_disktype": "hw_disk_type",
    "vmware_image_version": "img_version",
    "vmware_linked_clone": "img_linked_clone",
    "vmware_ostype": "os_distro",
    "xenapi_device_id": "hw_device_id",
    "xenapi_image_compression_level": "img_compression_level",
    "xenapi_skip_agent_inject_files_at_boot": "os_skip_agent_inject_files_at_boot",
    "xenapi_skip_agent_inject_ssh": "os_skip_agent_inject_ssh",
    "xenapi_use_agent": "img_use_agent",
}
# A property of this name stands for a bus and, unless it is IDE, for a model of a controller.
_ADAPTER = "vmware_adaptertype"
_IDE = "ide"

_ARCHITECTURES = {
    "i386": "i686",
    "i486": "i686",
    "i586": "i686",
    "x86_32": "i686",
    "x86_32p": "i686",
    "amd64": "x86_64",
}
# The properties whose values Nova reads in lower case, with the other spellings of values.
_SPELLINGS: dict[str, dict[str, str]] = {
    "hw_architecture": _ARCHITECTURES,
    "hw_emulation_architecture": _ARCHITECTURES,
    "hw_scsi_model": {"lsilogicsas": "lsisas1068", "paravirtual": "vmpvscsi"},
    "hw_vif_model": {
        "virtuale1000": "e1000",
        "virtuale1000e": "e1000e",
        "virtualpcnet32": "pcnet",
        "virtualsriovethernetcard": "sriov",
        "virtualvmxnet": "vmxnet",
        "virtualvmxnet3": "vmxnet3",
    },
    "hw_vm_mode": {"pv": "xen", "hv": "hvm", "baremetal": "hvm"},
    "img_hv_type": {"xapi": "xen"},
    "os_type": {},
}


def named_as_now(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with the names and the spelling that Nova gives them.

    A property under its name of today takes precedence over one under an older name.
    """
    found = {now: properties[older] for older, now in _OLDER_NAMES.items() if older in properties}
    adapter = properties.get(_ADAPTER)
    if adapter == _IDE:
        found["hw_disk_bus"] = _IDE
    elif adapter:
        found |= {"hw_disk_bus": "scsi", "hw_scsi_model": adapter}
    older_names = {*_OLDER_NAMES, _ADAPTER}
    found |= {name: value for name, value in properties.items() if name not in older_names}
    for name, spellings in _SPELLINGS.items():
        if name in found:
            value = found[name].lower()
            found[name] = spellings.get(value, value)
    return found
