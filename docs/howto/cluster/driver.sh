#!/bin/bash
# The driver of a sweep as a Slurm job of its own: sbatch driver.sh ridge.toml
# It asks for workers as slurm.toml says, and writes the store.
# Requeued after a failure it goes on where it was.
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
