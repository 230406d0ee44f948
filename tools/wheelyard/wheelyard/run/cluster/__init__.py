"""Runs jobs on a Dask cluster: workers need no checkout, no shared disk and no secrets.

`place` runs jobs through `link`, the connection to Dask's scheduler. `worker` is the process on each machine; in it
`service` runs a job from an order, with files from `store`. `offers` describes what machines can do, `keys` who belongs
to the cluster. Nothing of Dask is imported before `--cluster` or one of the cluster's own commands asks for it.
"""
