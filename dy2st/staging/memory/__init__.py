"""What shares memory with what, and what changes unseen by the journal."""
