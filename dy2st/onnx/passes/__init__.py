"""Passes over the program and over the written graph, each of which leaves every value as it is."""
