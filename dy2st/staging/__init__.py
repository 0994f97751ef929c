"""What happens under a capture: the session, its trace frames, and how control flow becomes part of the graph."""
