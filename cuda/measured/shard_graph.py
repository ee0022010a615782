"""Times a decode layer of one rank under tensor parallelism, in a CUDA graph, and each of its
kernels alone in a graph: what kernels of a shard lose beside each other. All-reduces are left out,
since one GPU has none.

    python3 cuda/measured/shard_graph.py > cuda/measured/shard-graph-CARD.txt

Needs PyTorch with Triton. Each time is the median over replays. A graph has 16 layers (or 16 calls
of a kernel) with weights and KV of their own, so that the L2 serves none of them.
"""
import statistics

import torch
import triton
import triton.language as tl
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

torch.manual_seed(1)
print(torch.cuda.get_device_name(), "torch", torch.__version__, "cuda", torch.version.cuda)
LAYERS, SAMPLES, DIM, TOKENS = 16, 21, 128, 1024


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


def timed(run):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    times = []
    for _ in range(SAMPLES + 5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(1e3 * start.elapsed_time(end) / LAYERS)
    return statistics.median(times[5:])


def half(*size):
    return torch.randn(*size, device="cuda", dtype=torch.bfloat16)


print("model, ranks, requests: us of a layer, us of its kernels alone, kernels, us between two; "
        "kernels")
for name, hidden, ffn, heads, kv in (("llama3-8b", 4096, 14336, 32, 8),
        ("codellama-34b", 8192, 22016, 64, 8), ("llama3-70b", 8192, 28672, 64, 8)):
    for ranks in (1, 2, 4, 8):
        h, g, f = heads // ranks, max(1, kv // ranks), ffn // ranks
        columns = (h + 2 * g) * DIM
        layers = [(half(hidden, columns), half(h * DIM, hidden), half(hidden, 2 * f),
                half(f, hidden))
                for _ in range(LAYERS)]
        norm = half(hidden)
        for n in (1, 8, 32):
            x, out = half(n, hidden), half(n, hidden)
            residual = torch.randn(n, hidden, device="cuda")
            qkv, mid, up, act = half(n, columns), half(n, h * DIM), half(n, 2 * f), half(n, f)
            angles = torch.randn(DIM, device="cuda")
            caches = [(half(n, g, TOKENS, DIM), half(n, g, TOKENS, DIM)) for _ in range(LAYERS)]
            block = triton.next_power_of_2(hidden)

            def norms(i):
                add_norm[(n,)](x, residual, norm, out, hidden, BLOCK=block, num_warps=8)

            def rotate(i):
                rope[(n, h + g)](qkv, angles, columns, HALF=DIM // 2, num_warps=1)

            def save(i):
                write[(n, g)](qkv, caches[i][0], columns, g * TOKENS * DIM, DIM=DIM, num_warps=1)

            def attend(i):
                with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                    scaled_dot_product_attention(qkv[:, :h * DIM].view(n, h, 1, DIM), *caches[i],
                            enable_gqa=True)

            def activate(i):
                silu_mul[(n, triton.cdiv(f, 1024))](up, act, f, BLOCK=1024, num_warps=4)

            parts = {"norm": norms, "qkv": lambda i: torch.mm(out, layers[i][0], out=qkv),
                "rope": rotate,
                "write": save, "attention": attend,
                "o": lambda i: torch.mm(mid, layers[i][1], out=x),
                "norm 2": norms, "gate_up": lambda i: torch.mm(out, layers[i][2], out=up),
                "silu_mul": activate, "down": lambda i: torch.mm(act, layers[i][3], out=x)}

            def every(kernels):
                for i in range(LAYERS):
                    for k in kernels:
                        k(i)
            alone = {k: timed(lambda: every([v])) for k, v in parts.items()}
            layer = timed(lambda: every(parts.values()))
            sums = sum(alone.values())
            print(name, ranks, n, f"{layer:.1f} {sums:.1f} {len(parts)}",
                    f"{(layer - sums) / len(parts):.2f};",
                    " ".join(f"{k} {v:.1f}" for k, v in alone.items()), flush=True)
        del layers, caches
        torch.cuda.empty_cache()
