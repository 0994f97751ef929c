"""torch functions that are written for one size, or whose program would differ from eager, by family."""
