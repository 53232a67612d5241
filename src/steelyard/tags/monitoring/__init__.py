"""The health and the metrics of the parts of the tag service."""
