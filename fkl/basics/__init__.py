"""Code that does not depend on learning: errors, files, memory, random streams, plain data."""
