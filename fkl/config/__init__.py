"""The words of a command line and a user's YAML files become a checked `Run`.

`compose` merges the files that the words choose, `loading` checks their values and makes objects of them, `digest`
names the run. `choices` and `experiments` list all choices. Begin with `compose`.
"""
