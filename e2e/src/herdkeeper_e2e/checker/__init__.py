"""A checker in the style of Jepsen's set and register workloads.

Clients write and read SQL while faults are drawn at random; each operation is recorded with when it began and ended, and the histories are
compared with what the tables hold at the end.
"""
