"""What a code base has of control flow on tensors, and what of it would be refused: read from its source, not run."""
