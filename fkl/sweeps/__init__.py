"""Many runs: `fkl run -m`.

`hydra` calls Hydra's sweepers and launchers, `optuna` searches, `job` executes the jobs and prints the closing table,
`plan` says beforehand what a sweep takes. Begin with `job`.
"""
