"""Engines: the code that executes the rounds of a run.

`rounds` is the loop over replicates, the same for all engines. `base` has the engines of this process, `jax` compiles
all rounds for a device. `checkpoint` saves a long run. Start with `rounds.simulate_run`.
"""
