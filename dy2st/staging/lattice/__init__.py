"""Joining the values that two paths leave behind: a lattice whose top is a refusal."""
