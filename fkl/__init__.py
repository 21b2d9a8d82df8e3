"""fkl: federated and online kernel learning, every method on the same data, features and ledger."""

__version__ = "0.1.0"
