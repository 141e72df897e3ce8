"""Random stories of SQL statements and faults, played on real servers that are plain processes, without Kubernetes.

`story` draws them (pure), `world` has the processes, `script` has one tablespace's part of a story,
`telling` plays the whole one, and `judgement` finds violations.
"""
