"""Clocks that a model reads while it is exported: they all but stand still.

A trace takes far longer than the code does, so that a limit on elapsed time would be exceeded in the trace, and the
program would have that path for good. As it is, the program has the path of a run that takes next to no time. Each
reading is later than the one before, since code divides by the difference of two.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from dy2st.calls.builtins.overloads import stands_for
from dy2st.calls.outside_world import Constants
from dy2st.operators.export_session import current
from dy2st.source.call_places import in_constant
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.session import MODE

# What each clock advances by from one reading to the next: a microsecond, in the clock's own unit. In seconds since
# 1970 a float64 has no smaller one left.
_SECONDS = (time.time, time.perf_counter, time.monotonic, time.process_time, time.thread_time)
_NANOSECONDS = (time.time_ns, time.perf_counter_ns, time.monotonic_ns, time.process_time_ns, time.thread_time_ns)


def _read(clock: Callable[[], Any], step: float) -> Any:
    """What a clock says: the first time as it is, then a step later each time.

    The readings are those of an export, all of whose traces so take the same path. What the user has declared to be
    read once is read.
    """
    if MODE.capture is None or in_constant(location_of(users_frame())):
        return clock()
    readings = current().part(Constants).readings
    readings[clock] = readings[clock] + step if clock in readings else clock()
    return readings[clock]


for _clock in _SECONDS:
    stands_for(_clock)(functools.partial(_read, _clock, 1e-6))
for _clock in _NANOSECONDS:
    stands_for(_clock)(functools.partial(_read, _clock, 1000))
