"""The properties of images under the names and in the spelling of today."""

from steelyard.cloud.image_properties import named_as_now


def test_older_name_is_replaced() -> None:
    assert named_as_now({"hypervisor_type": "kvm", "vm_mode": "HV"}) == {
        "img_hv_type": "kvm",
        "hw_vm_mode": "hvm",
    }


def test_name_of_today_takes_precedence() -> None:
    assert named_as_now({"hw_architecture": "aarch64", "architecture": "amd64"}) == {
        "hw_architecture": "aarch64"
    }


def test_other_properties_are_kept_as_they_are() -> None:
    assert named_as_now({"trait:CUSTOM_A": "required", "Other": "Value"}) == {
        "trait:CUSTOM_A": "required",
        "Other": "Value",
    }


def test_adapter_of_vmware_names_bus_and_model() -> None:
    assert named_as_now({"vmware_adaptertype": "paraVirtual"}) == {
        "hw_disk_bus": "scsi",
        "hw_scsi_model": "vmpvscsi",
    }
    assert named_as_now({"vmware_adaptertype": "ide"}) == {"hw_disk_bus": "ide"}
