"""Differences of methods and their verdicts: arrays in, verdicts out.

`differences` has the difference of two methods with its variance, `verdicts` what follows from it, `equivalence`
whether a printed number agrees with ours. No file and no run is read here. Begin with `verdicts`.
"""
