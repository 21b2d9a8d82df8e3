"""`fkl study` turns a question into a table.

`plan` reads the study's file, `jobs` and `search` tune each method with equal trials, `results` compares the judged
runs, `answer` and `tables` report the result, `paper` writes LaTeX. Begin with `command`.
"""
