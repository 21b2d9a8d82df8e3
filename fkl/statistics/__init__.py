"""Differences of methods and their verdicts, computed from arrays.

`differences` computes the difference of two methods and its variance, `verdicts` decides which method is better, and
`equivalence` decides whether a printed number agrees with ours. No module reads files or runs. Begin with `verdicts`.
"""
