"""Derivatives of graphs: reverse mode over what was traced, loops and branches included."""
