"""A live OpenStack: its import into a cloud file, and why a server was not placed."""
