"""From the words of a command line, and a user's YAML files, to a checked `Run`.

`compose` merges the files that the words choose, `loading` makes objects of them and checks their values, `digest`
names the run. `choices` and `experiments` list what can be chosen. Begin with `compose`.
"""
