"""Real sites: a ServerApp and a ClientApp of Flower around the functions of the contract.

`server` and `site` are the two ends, `messages` what they exchange, `trial` runs all of them on one machine. Only
`messages`, `server`, `site` and `site_process` need flwr, of the extra flower; nothing else of fkl imports these. Begin
with `server`.
"""
