"""What knows nothing of learning: errors, files, memory, random streams, plain data."""
