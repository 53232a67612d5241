"""A cloud file whose names and metadata look like HTML."""

CLOUD = """\
hosts:
  h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  h2: {vcpus: 4, ram_mb: 8192, disk_gb: 100}
aggregates:
  "<b>slow</b>": {hosts: [h2], metadata: {ssd: "<script>alert(1)</script>"}}
flavors:
  small: {vcpus: 1, ram_mb: 1024, disk_gb: 10}
  fast: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {ssd: "!"}}
  huge: {vcpus: 99, ram_mb: 1024, disk_gb: 10}
server_groups:
  apart: {policy: anti-affinity}
"""
