"""The ``dy2st`` command: convert, check, code, init, explain."""
