"""The request that Nova sends to Placement for a wanted server, part by part."""
