"""A training step as one graph: the loss, its derivative as rewriting of graphs, and the optimiser's update."""
