"""Python's own functions on staged values."""
