#!/bin/sh
#SBATCH --job-name=s
#SBATCH --array=1-4
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output="/home/me/out/slurm"/task-%a.log
cd '/home/me' || exit 1
exec '/opt/it'\''s/sparseserve' 'simulate' 's.toml' '--points' 'out/runs' '--tasks' '4'
