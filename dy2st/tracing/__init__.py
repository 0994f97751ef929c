"""torch's tracing, each of its internals behind a name of ours: the tracer, subgraphs, graph operators, guards."""
