"""Methods whose clients train the server's model with steps of their own, and send the change."""
