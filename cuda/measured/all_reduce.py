"""Times NCCL's all-reduce of fp16 between the GPUs of this host, as tensor
parallelism has two of a layer.

    NCCL_NVLS_ENABLE=0 python3 cuda/measured/all_reduce.py > cuda/measured/all-reduce-CARDS.txt

Needs PyTorch and two GPUs or more. Each time is the median over replays of a CUDA graph of 20
all-reduces in a row, after a warm-up; the sum is checked first.
"""
import os
import statistics

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

INNER, SAMPLES = 20, 15


def seconds(x):
    """Median seconds of one all-reduce of x."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            dist.all_reduce(x)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for _ in range(INNER):
            dist.all_reduce(x)
    times = []
    for _ in range(SAMPLES + 3):
        dist.barrier()
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        g.replay()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b) * 1e-3 / INNER)
    return statistics.median(times[3:])


def rank(r, n):
    torch.cuda.set_device(r)
    dist.init_process_group("nccl", rank=r, world_size=n, device_id=torch.device("cuda", r))
    check = torch.full((1000,), float(r + 1), device="cuda", dtype=torch.float16)
    dist.all_reduce(check)
    assert torch.all(check == n * (n + 1) / 2), check
    if r == 0:
        print(torch.cuda.get_device_name(), "x", n, "torch", torch.__version__, "cuda",
                torch.version.cuda, "nccl", torch.cuda.nccl.version())
        print("bytes us GB/s (bus: 2 (n-1)/n bytes over the time)")
    for power in range(12, 29):
        size = 1 << power
        x = torch.zeros(size // 2, device="cuda", dtype=torch.float16)
        t = seconds(x)
        if r == 0:
            print(size, f"{1e6 * t:.2f}", f"{2 * (n - 1) / n * size / t * 1e-9:.1f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29533")
    mp.spawn(rank, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
