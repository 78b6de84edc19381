#!/bin/bash
# The driver of a sweep as a Slurm job of its own: sbatch driver.sh ridge.toml
# The driver submits the workers that slurm.toml describes, and writes the store.
# After a failure Slurm starts the driver again, and the sweep continues from the store.
#SBATCH --job-name=limitlab-driver
#SBATCH --time=24:00:00
#SBATCH --cpus-per-task=1
#SBATCH --mem=8G
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

file="${1:?give a sweep file}"
source "$HOME/.venv/bin/activate"
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

limitlab sweep "$file" --dry-run
limitlab sweep "$file" --engine slurm:slurm.toml
