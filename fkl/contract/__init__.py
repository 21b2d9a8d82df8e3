"""The interfaces of methods: each party computes with its own data and with messages.

`star` is a server with clients, `graph` agents without a server, `parties` actors with different features,
`lone_party` one party by itself. `world` has what all of them get. Begin with `star`.
"""
