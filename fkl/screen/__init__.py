"""All terminal output of fkl.

`messages` prints results on stdout and warnings on stderr, `sheet` writes every table in every format, `columns`
explains each column, `units` formats numbers. Begin with `sheet.Sheet`.
"""
