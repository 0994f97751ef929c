"""Gradients that a model takes by itself, and what it asks and says of them."""
