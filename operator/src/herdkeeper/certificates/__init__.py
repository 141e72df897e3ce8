"""Certificates that the operator makes: an authority for each stack, and what it signs. Pure, but for the randomness of keys."""
