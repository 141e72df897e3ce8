"""A checker like Jepsen's set and register workloads.

Clients write and read SQL during random faults. Each operation is recorded with its begin and end, and the histories are compared with the
final tables.
"""
