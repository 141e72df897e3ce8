"""After how many seconds a resource is reconciled again though no event asked for it.

What has a reason of its own for another time, such as a schedule, a deadline or a failover, keeps its time beside that reason.
"""

from __future__ import annotations

NOTED = 0.2
"""What is written now, the status above all, is what the next step goes by."""
NEXT_STEP = 1.0
"""A short call was made; the next step shows what became of it."""
SOON = 2.0
"""Objects or servers are changing. Events tell of that; this is for one that is lost."""
PENDING = 5.0
"""Something is missing that comes by itself, and has no event."""
UNREAD = 30.0
"""It could not be read, or reading it costs much."""
BLOCKED = 60.0
"""Only a person can change what is in the way, and that has an event of its own."""
