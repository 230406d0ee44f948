"""Prints a Slurm script that offers nodes to a wheelyard cluster; dask-jobqueue writes it.

python slurm.py tls://login:8786 | sbatch --array=1-16
"""

import sys

from dask_jobqueue.slurm import SLURMJob

job = SLURMJob(
    scheduler=sys.argv[1],
    name="$SLURM_JOB_NAME-$SLURM_ARRAY_TASK_ID",  # each worker needs a name of its own
    job_name="wheelyard",
    cores=16,
    processes=1,  # a worker runs as many jobs side by side as it has cores
    memory="64GB",
    walltime="12:00:00",
    death_timeout=600,
    local_directory="${TMPDIR:-/tmp}/wheelyard-$SLURM_JOB_ID",
    worker_command="wheelyard worker",
    worker_extra_args=["--keys", "$HOME/.config/wheelyard/cluster"],
    python="python3",
    # A login shell's modules, or a virtual environment with wheelyard[cluster]:
    job_script_prologue=['. "$HOME/wheelyard/bin/activate"'],
)
print(job.job_script())
