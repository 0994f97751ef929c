"""Calls: which functions are converted, and what is called in place of the others."""
