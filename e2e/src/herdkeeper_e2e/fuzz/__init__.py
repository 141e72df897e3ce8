"""Random stories of SQL statements and faults, played on real servers that are plain processes, without Kubernetes.

`story` draws them (pure), `world` has the processes, `telling` plays one, `judgement` finds violations, `folding` folds the logs.
"""
