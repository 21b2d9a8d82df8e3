"""Real sites: a ServerApp and a ClientApp of Flower that call the functions of the contract.

`server` and `site` are the two ends, `messages` has the messages between them, `trial` runs all of them on one machine.
Only `messages`, `server`, `site` and `site_process` need flwr, from the extra flower; nothing else in fkl imports them.
Begin with `server`.
"""
