"""`fkl study`: from a question to a table.

`plan` reads the file with the question, `jobs` and `search` tune each method with equal trials, `results` compares the
judged runs, `answer` and `tables` say what follows, `paper` writes LaTeX. Begin with `command`.
"""
