"""Facts about a server that was not placed, read from a live cloud, and its Placement."""
