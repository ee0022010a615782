"""Times the four linears of one layer as torch runs them (cuBLAS, fp16), for shapes of models
and of their shards.

    python3 cuda/measured/linears.py > cuda/measured/linears-CARD.txt

Needs PyTorch. Each time is the median over replays of a CUDA graph of eight layers whose weights
together are beyond L2, divided by eight.
"""
import statistics

import torch

torch.manual_seed(1)
print(torch.cuda.get_device_name(), "torch", torch.__version__, "cuda", torch.version.cuda)
LAYERS, SAMPLES = 8, 15

# name: hidden, query heads, KV heads, FFN of one GPU; head dim 128
SHAPES = {
    "llama2-7b": (4096, 32, 32, 11008),
    "llama3-8b": (4096, 32, 8, 14336),
    "codellama-34b/2": (8192, 32, 4, 11008),
    "llama3-70b/2": (8192, 32, 4, 14336),
    "llama3-70b/4": (8192, 16, 2, 7168),
    "llama2-7b/2": (4096, 16, 16, 5504),
}


def layer_us(h, q, kv, ffn, tokens):
    def matrix(out, into):
        return torch.randn(out, into, device="cuda", dtype=torch.float16) * 0.02
    weights = [(matrix((q + 2 * kv) * 128, h), matrix(h, q * 128), matrix(2 * ffn, h), matrix(h,
            ffn)) for _ in range(LAYERS)]
    x = torch.randn(tokens, h, device="cuda", dtype=torch.float16)
    a = torch.randn(tokens, q * 128, device="cuda", dtype=torch.float16)
    f = torch.randn(tokens, ffn, device="cuda", dtype=torch.float16)

    def run():
        for qkv, out, up, down in weights:
            torch.nn.functional.linear(x, qkv)
            torch.nn.functional.linear(a, out)
            torch.nn.functional.linear(x, up)
            torch.nn.functional.linear(f, down)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        run()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        run()
    times = []
    for _ in range(SAMPLES + 3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        g.replay()
        end.record()
        end.synchronize()
        times.append(1e3 * start.elapsed_time(end) / LAYERS)
    return statistics.median(times[3:])


print("shape tokens us GB/s (weights over the time)")
for name, (h, q, kv, ffn) in SHAPES.items():
    weights = 2 * h * ((q + 2 * kv) * 128 + q * 128 + 3 * ffn)
    for tokens in (1, 8, 16, 32, 64, 128, 256, 2048):
        us = layer_us(h, q, kv, ffn, tokens)
        print(name, tokens, f"{us:.1f}", f"{weights / us * 1e-3:.0f}", flush=True)
    torch.cuda.empty_cache()
