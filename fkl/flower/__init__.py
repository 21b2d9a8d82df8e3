"""Real sites: a ServerApp and a ClientApp of Flower around the functions of the contract.

Only `apps`, `hub`, `site` and `records` need flwr, which comes with fkl[flower]; nothing else of fkl imports these.
"""
