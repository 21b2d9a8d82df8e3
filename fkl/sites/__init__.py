"""Real sites: a ServerApp and a ClientApp of Flower around the functions of the contract.

Only `messages`, `server`, `site` and `site_process` need flwr, of the extra flower; nothing else of fkl imports these.
"""
