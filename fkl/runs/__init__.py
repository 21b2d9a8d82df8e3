"""One run, from its configuration to a folder of results.

`play` prepares, executes and finishes it, `folder` ensures that the folder is complete or absent, `tables` writes its
CSV files, `model` saves the learned model. `api` is `fkl.run`. Begin with `play.execute_run`.
"""
