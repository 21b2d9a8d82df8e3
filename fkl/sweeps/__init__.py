"""Many runs: `fkl run -m`.

`hydra` calls Hydra's sweepers and launchers, `optuna` searches, `job` executes the jobs and prints the closing table,
`plan` forecasts the cost of a sweep. Begin with `job`.
"""
