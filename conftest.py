"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Both measure the machine and what else it has to do, not the test.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
