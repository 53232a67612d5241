"""Questions about a cloud or a configuration, answered from values."""
