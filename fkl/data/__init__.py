"""Data sets: found, fetched, read, scaled and divided among clients.

Most published data sets are YAML files in conf/dataset, which `table_set` and `readers` read. A user's own file goes
through `own_file`, `table_file` and `encoder`. `partition` and `vertical` divide rows and features. `problem` is the
result for the rest of fkl. Begin with `problem`.
"""
