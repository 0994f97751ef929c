"""The ``dy2st`` command: convert, check, code, explain."""
