"""Code that does not depend on learning.

`errors` are one line that a user can act on, `keys` declare what a configuration may set, `files` are written
completely or not at all, `random_streams` give each party its own numbers, `memory` refuses what does not fit. Begin
with `keys`.
"""
