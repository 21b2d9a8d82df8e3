"""Scripts that play the round of `benchmarks.frameworks` in other frameworks, each in an environment of its own.

None imports fkl: it is not there. `work` has what all of them are given, and takes their time.
"""
