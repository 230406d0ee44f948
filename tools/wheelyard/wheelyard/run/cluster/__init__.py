"""Runs jobs on a Dask cluster: workers need no checkout, no shared disk and no secrets.

`place` runs jobs through `link`, the connection to Dask's scheduler. `worker` is the process on each machine; `service`
says what it is told of a job, and does one in it, with files from `store`. `offers` says what machines can do, `keys`
who belongs to the cluster.
Nothing of Dask is imported before `--cluster` or one of the cluster's own commands asks for it.
"""
