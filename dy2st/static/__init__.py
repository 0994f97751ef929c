"""``to_static`` behind its face: the programs of a function, when each of them holds, and how it is run."""
