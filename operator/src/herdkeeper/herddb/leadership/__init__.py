"""Who leads each tablespace, and how a leadership moves. Pure."""
