"""One run, from its configuration to a folder of results.

`play` prepares, executes and finishes it, `folder` makes the folder complete or absent, `tables` writes its CSV files,
`model` keeps what was learned. `api` is `fkl.run`. Begin with `play.execute`.
"""
