"""Certificates of the operator: an authority per stack, and what it signs. Pure, except for random keys."""
