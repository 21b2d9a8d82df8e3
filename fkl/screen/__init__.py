"""All terminal output of fkl.

`messages` are results on stdout and warnings on stderr, `sheet` is every table in every format, `columns` says what
each column means, `units` writes numbers. Begin with `sheet.Sheet`.
"""
