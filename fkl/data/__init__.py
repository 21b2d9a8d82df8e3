"""Data sets: finding, fetching, reading and scaling them, and dividing them among clients.

Most published data sets are YAML files in conf/dataset, which `table_set` and `readers` read. A user's own file goes
through `own_file`, `table_file` and `encoder`. `partition` and `vertical` divide rows and features. `problem` has the
results that the rest of fkl uses. Begin with `problem`.
"""
