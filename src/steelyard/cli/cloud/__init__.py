"""Commands on a cloud, which is described in a cloud file or imported into one."""
