"""The interfaces of methods: each party computes with its own data and with the messages that it receives.

`star` is for a server with clients, `graph` for agents without a server, `parties` for actors with different features,
`lone_party` for one party alone. `world` has the objects that all of them use. Start with `star`.
"""
