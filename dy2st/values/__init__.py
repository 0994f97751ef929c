"""Values that are known only when the graph runs, and what they are made of."""
