"""Times decode layers of two ranks under tensor parallelism, in a CUDA graph on each, with and
without the all-reduces of the layer, and the all-reduces alone: what is left is what ranks lose by
waiting for one another and by gaps around an all-reduce. All-reduces are NCCL's, and one-shot
kernels over symmetric memory, as serving engines use them for small sizes.

    python3 cuda/measured/ranks_graph.py > cuda/measured/ranks-graph-CARD.txt

Needs two GPUs and PyTorch with Triton and NCCL. Each time is the median over replays, of the slower
rank. A graph has 16 layers with weights and KV of their own, so that the L2 serves none of them.
"""
import os
import statistics

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import torch.multiprocessing as mp
import triton
import triton.language as tl
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

LAYERS, SAMPLES, DIM, TOKENS, RANKS = 16, 41, 128, 1024, 2


@triton.jit
def add_norm(x, residual, weight, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0) * width
    at = tl.arange(0, BLOCK)
    inside = at < width
    v = tl.load(x + row + at, inside).to(tl.float32) + tl.load(residual + row + at, inside)
    tl.store(residual + row + at, v, inside)
    scale = 1 / tl.sqrt(tl.sum(v * v, 0) / width + 1e-5)
    tl.store(out + row + at, v * scale * tl.load(weight + at, inside).to(tl.float32), inside)


@triton.jit
def rope(x, angles, stride, HALF: tl.constexpr):
    at = tl.arange(0, HALF)
    head = x + tl.program_id(0) * stride + tl.program_id(1) * 2 * HALF
    a = tl.load(head + at).to(tl.float32)
    b = tl.load(head + HALF + at).to(tl.float32)
    c = tl.load(angles + at)
    s = tl.load(angles + HALF + at)
    tl.store(head + at, a * c - b * s)
    tl.store(head + HALF + at, a * s + b * c)


@triton.jit
def write(x, cache, stride, slot, DIM: tl.constexpr):
    at = tl.arange(0, DIM)
    tl.store(cache + tl.program_id(0) * slot + tl.program_id(1) * DIM + at,
            tl.load(x + tl.program_id(0) * stride + tl.program_id(1) * DIM + at))


@triton.jit
def silu_mul(x, out, width, BLOCK: tl.constexpr):
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    row = tl.program_id(0) * 2 * width
    g = tl.load(x + row + at, inside).to(tl.float32)
    u = tl.load(x + row + width + at, inside).to(tl.float32)
    tl.store(out + tl.program_id(0) * width + at, g / (1 + tl.exp(-g)) * u, inside)


def half(*size):
    return torch.randn(*size, device="cuda", dtype=torch.bfloat16)


def timed(run, stream):
    """Microseconds of a layer: the slower rank's median over replays that start together."""
    with torch.cuda.stream(stream):
        run()
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        run()
    times = []
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(SAMPLES + 5):
        dist.barrier()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            graph.replay()  # the measured ones follow one that both ranks are busy with
            start.record()
            for _ in range(4):
                graph.replay()
            end.record()
        end.synchronize()
        times.append(1e3 * start.elapsed_time(end) / LAYERS / 4)
    worst = torch.tensor(statistics.median(times[5:]), device="cuda")
    both = [torch.zeros_like(worst) for _ in range(RANKS)]
    dist.all_gather(both, worst)
    return max(float(t) for t in both), [float(t) for t in both]


def rank_main(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", NCCL_NVLS_ENABLE="0")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=RANKS)
    torch.manual_seed(1 + rank)
    say = print if rank == 0 else lambda *_, **__: None
    say(torch.cuda.get_device_name(), "torch", torch.__version__, "cuda", torch.version.cuda,
            "nccl", torch.cuda.nccl.version())
    say("model, ranks, requests, all-reduce: us of a layer without all-reduces (rank 0, rank 1), "
            "two all-reduces alone, layer with all-reduces, lost a layer")
    group = dist.group.WORLD.group_name
    shared = symm_mem.empty(64 * 8192, device="cuda", dtype=torch.bfloat16)
    symm_mem.rendezvous(shared, group)
    stream = torch.cuda.Stream()
    for name, hidden, ffn, heads, kv in (("llama3-8b", 4096, 14336, 32, 8),
            ("codellama-34b", 8192, 22016, 64, 8), ("llama3-70b", 8192, 28672, 64, 8)):
        h, g, f = heads // RANKS, kv // RANKS, ffn // RANKS
        columns = (h + 2 * g) * DIM
        layers = [(half(hidden, columns), half(h * DIM, hidden), half(hidden, 2 * f),
                half(f, hidden)) for _ in range(LAYERS)]
        norm = half(hidden)
        for n in (1, 2, 4, 8, 16, 32, 64):
            x, out = shared[:n * hidden].view(n, hidden).normal_(), half(n, hidden)
            residual = torch.randn(n, hidden, device="cuda")
            qkv, mid, up, act = half(n, columns), half(n, h * DIM), half(n, 2 * f), half(n, f)
            angles = torch.randn(DIM, device="cuda")
            caches = [(half(n, g, TOKENS, DIM), half(n, g, TOKENS, DIM)) for _ in range(LAYERS)]
            block = triton.next_power_of_2(hidden)

            def layer(i, reduce=None):
                add_norm[(n,)](x, residual, norm, out, hidden, BLOCK=block, num_warps=8)
                torch.mm(out, layers[i][0], out=qkv)
                rope[(n, h + g)](qkv, angles, columns, HALF=DIM // 2, num_warps=1)
                write[(n, g)](qkv, caches[i][0], columns, g * TOKENS * DIM, DIM=DIM, num_warps=1)
                with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                    scaled_dot_product_attention(qkv[:, :h * DIM].view(n, h, 1, DIM), *caches[i],
                            enable_gqa=True)
                torch.mm(mid, layers[i][1], out=x)
                if reduce:
                    reduce()
                add_norm[(n,)](x, residual, norm, out, hidden, BLOCK=block, num_warps=8)
                torch.mm(out, layers[i][2], out=up)
                silu_mul[(n, triton.cdiv(f, 1024))](up, act, f, BLOCK=1024, num_warps=4)
                torch.mm(act, layers[i][3], out=x)
                if reduce:
                    reduce()

            def every(reduce=None):
                for i in range(LAYERS):
                    layer(i, reduce)

            def one_shot():
                torch.ops.symm_mem.one_shot_all_reduce_out(x, "sum", group, out)

            without, ranks = timed(every, stream)
            for kind, reduce in (("nccl", lambda: dist.all_reduce(x)), ("one-shot", one_shot)):
                alone, _ = timed(lambda: [reduce() for _ in range(2 * LAYERS)], stream)
                whole, _ = timed(lambda: every(reduce), stream)
                say(name, RANKS, n, kind, f"{without:.1f} ({ranks[0]:.1f} {ranks[1]:.1f})",
                        f"{alone:.1f} {whole:.1f} {whole - without - alone:+.1f}", flush=True)
                x.normal_()
        del layers, caches
        torch.cuda.empty_cache()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(rank_main, nprocs=RANKS)
