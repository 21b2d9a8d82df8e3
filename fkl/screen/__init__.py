"""All that fkl shows in a terminal: messages, blocks of a run, lines of a sweep, tables, units and what names mean."""
