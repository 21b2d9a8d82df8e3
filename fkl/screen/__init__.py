"""All terminal output of fkl: messages, blocks of a run, lines of a sweep, tables, units and meanings of names."""
