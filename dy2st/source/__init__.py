"""Source in, rewritten functions out; and which code is the user's."""
