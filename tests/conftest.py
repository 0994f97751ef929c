"""Settings for all suites. Nothing here imports torch: tests/python runs without it."""

from __future__ import annotations

import os

# Each worker runs small graphs: more threads than one only make them wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("PYTHONHASHSEED", "0")
