"""How many programs the tests run: ``ci`` always the same ones, ``nightly`` thousands of others each time."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

COMMON = settings(
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking.py knows the language, and makes them smaller
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
)
settings.register_profile("ci", COMMON, max_examples=60, derandomize=True)
settings.register_profile("nightly", COMMON, max_examples=3000)


def is_nightly() -> bool:
    """Whether this run looks for more (``--hypothesis-profile=nightly``)."""
    return settings.get_current_profile_name() == "nightly"


def chosen() -> settings:
    """The profile of this run."""
    return settings.get_profile("nightly" if is_nightly() else "ci")


def few() -> settings:
    """Always the same few programs, whatever the profile."""
    return settings(COMMON, max_examples=12, derandomize=True)
