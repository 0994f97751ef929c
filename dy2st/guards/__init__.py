"""Guards: what a captured program has read of the world, and whether that is still what it was."""
