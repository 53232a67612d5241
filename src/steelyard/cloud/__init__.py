"""Clouds as values, and cloud files: hosts, aggregates, flavors, groups and servers."""

from steelyard.cloud.files.provider_file import load as load_providers
from steelyard.cloud.model import Cloud
from steelyard.cloud.values import Aggregate, Flavor, Host, Server

__all__ = ["Aggregate", "Cloud", "Flavor", "Host", "Server", "load_providers"]
