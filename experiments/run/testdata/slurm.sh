#!/bin/sh
#SBATCH --job-name=s
#SBATCH --array=1-16
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
cd '/home/me' || exit 1
status=0
for point in $(awk -v task="$SLURM_ARRAY_TASK_ID" 'NR % 16 == task % 16' 'out/slurm'/points.txt); do
  '/opt/it'\''s/sparseserve' point 'out/slurm'/"$point".toml --points 'out/points' || status=1
done
exit $status
