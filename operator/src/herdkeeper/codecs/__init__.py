"""Other systems' bytes. Pure."""
