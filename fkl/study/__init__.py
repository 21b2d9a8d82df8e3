"""`fkl study`: from a question to a table: methods tuned with equal trials, judged on other rows, compared fairly."""
