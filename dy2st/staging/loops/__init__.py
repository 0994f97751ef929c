"""``while``, ``for`` and comprehensions whose number of iterations is data-dependent."""
