"""Stories of SQL statements and faults, drawn by a seed and told to real servers that are plain processes, without Kubernetes.

`story` draws them (pure), `world` has the processes, `telling` tells one, `judgement` says what it broke, `folding` folds the logs.
"""
