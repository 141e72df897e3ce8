"""Repairs missing and damaged entries of closed ledgers on the bookies that should hold them, from verified replicas."""
