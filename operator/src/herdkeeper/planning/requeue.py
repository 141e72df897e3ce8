"""Requeue intervals in seconds, for reconciles without an event.

Intervals with a reason of their own, such as a schedule, a deadline or a failover, are defined beside that reason.
"""

from __future__ import annotations

NOTED = 0.2
"""The next step depends on what is written now, especially the status."""
NEXT_STEP = 1.0
"""The result of a short call shows at the next step."""
SOON = 2.0
"""Objects or servers are changing. Events report that; this is for lost events."""
PENDING = 5.0
"""Something is missing that appears without an event."""
UNREAD = 30.0
"""A read failed, or is expensive."""
BLOCKED = 60.0
"""Only a person can remove the obstacle, which causes an event."""
