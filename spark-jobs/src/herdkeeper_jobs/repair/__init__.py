"""Writes missing and damaged entries of closed ledgers again, on the bookies that should hold them, from replicas that were verified."""
