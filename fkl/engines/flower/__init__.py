"""Real sites: a ServerApp and a ClientApp of Flower around the functions of the contract.

Only `apps`, `hub`, `site` and `records` need flwr, of the extra flower; nothing else of fkl imports these.
"""
