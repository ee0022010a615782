#!/bin/sh
#SBATCH --job-name=s
#SBATCH --array=1-16
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output="/home/me/out/slurm"/task-%a.log
cd '/home/me' || exit 1
exec '/opt/it'\''s/sparseserve' 'task' 'out/slurm' '--points' 'out/runs' '--tasks' '16'
