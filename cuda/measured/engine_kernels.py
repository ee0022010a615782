"""Times on this GPU what serving engines run and this project's library does not have:
drawing a token from the logits as vLLM's sampler does, and cuDNN's prefill attention.

    python3 cuda/measured/engine_kernels.py > cuda/measured/engine-kernels-CARD.txt

Needs PyTorch. Each time is the median of replays of a CUDA graph, or of events for what
cannot be captured, after a warm-up.
"""
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(1)
print(torch.cuda.get_device_name(), "torch", torch.__version__, "cuda", torch.version.cuda, "cudnn",
        torch.backends.cudnn.version())


def timed(fn, inner=1, samples=15):
    """Median seconds of fn over samples of inner calls each, by events."""
    for _ in range(3):
        fn()
    torch.cuda.synchronize()
    times = []
    for _ in range(samples):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        for _ in range(inner):
            fn()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b) * 1e-3 / inner)
    return statistics.median(times)


def graphed(fn, inner=20):
    """Median seconds of fn within a replayed CUDA graph."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            fn()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for _ in range(inner):
            fn()
    return timed(g.replay) / inner


print("\n# sampler: rows vocab us (fp32 copy, temperature, softmax, exponential race, argmax; "
      "logprobs off), greedy, top-p of 0.9")
for vocab in (32000, 64000, 128256, 151936):
    for rows in (1, 8, 16, 32, 64, 128):
        logits = torch.randn(rows, vocab, device="cuda", dtype=torch.float16)
        temperature = torch.full((rows, 1), 0.8, device="cuda")

        def draw():
            x = logits.to(torch.float32).div_(temperature)
            p = x.softmax(dim=-1, dtype=torch.float32)
            q = torch.empty_like(p)
            q.exponential_()
            return p.div_(q).argmax(dim=-1)

        # top-p as vLLM has it without FlashInfer: sort, cumulative sum, mask, scatter
        def nucleus():
            x = logits.to(torch.float32).div_(temperature)
            ordered, index = x.sort(dim=-1, descending=False)
            held = ordered.softmax(dim=-1)
            torch.cumsum(held, dim=-1, out=held)
            mask = held <= 0.1
            mask[:, -1] = False
            ordered.masked_fill_(mask, -float("inf"))
            x = x.scatter_(dim=-1, index=index, src=ordered)
            p = x.softmax(dim=-1, dtype=torch.float32)
            q = torch.empty_like(p)
            q.exponential_()
            return p.div_(q).argmax(dim=-1)

        def greedy():
            return logits.to(torch.float32).argmax(dim=-1)

        print(f"{rows} {vocab} {1e6 * graphed(draw):.1f} "
              f"greedy {1e6 * graphed(greedy):.1f} top-p {1e6 * graphed(nucleus, 5):.1f}")

print("\n# LM head, fp16: rows vocab us, of hidden 4096")
for vocab in (32000, 128256):
    w = torch.randn(vocab, 4096, device="cuda", dtype=torch.float16)
    for rows in (1, 8, 32, 128):
        x = torch.randn(rows, 4096, device="cuda", dtype=torch.float16)
        print(f"{rows} {vocab} {1e6 * graphed(lambda: torch.nn.functional.linear(x, w)):.1f}")

print("\n# cuDNN causal prefill attention, fp16, head dim 128: q heads, kv heads, tokens, us, "
      "TFLOP/s")
for kv_heads in (32, 8):
    for tokens in (256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072):
        q = torch.randn(1, 32, tokens, 128, device="cuda", dtype=torch.float16)
        k = torch.randn(1, kv_heads, tokens, 128, device="cuda", dtype=torch.float16)
        v = torch.randn_like(k)
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            run = lambda: torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=True, enable_gqa=kv_heads < 32)
            inner, samples = (20, 15) if tokens <= 4096 else (1, 9 if tokens <= 32768 else 3)
            t = timed(run, inner, samples)
        flops = 2 * 128 * 32 * tokens * tokens
        print(f"32 {kv_heads} {tokens} {1e6 * t:.1f} {flops / t * 1e-12:.0f}")

print("\n# cuDNN, a chunk after a prefix (bottom-right mask by lengths is not exposed: full "
      "attention to the prefix): query, prefix, us, TFLOP/s")
for query in (512, 2048, 8192):
    for prefix in (8192, 32768, 131072):
        q = torch.randn(1, 32, query, 128, device="cuda", dtype=torch.float16)
        k = torch.randn(1, 8, prefix, 128, device="cuda", dtype=torch.float16)
        v = torch.randn_like(k)
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            t = timed(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v,
                    enable_gqa=True), 3, 9)
        print(f"{query} {prefix} {1e6 * t:.1f} {4 * 128 * 32 * query * prefix / t * 1e-12:.0f}")

print("\n# matrices of a layer in a graph: shape, tokens, us without pause, us after 20 ms of "
      "rest (one layer of 8 copies, 8 layers)")
for name, hidden, qkv, ffn in (("llama2-7b", 4096, 12288, 11008), ("llama3-8b", 4096, 6144, 14336)):
    ws = [[torch.randn(n, k, device="cuda", dtype=torch.float16) * 0.02 for n, k in
           ((qkv, hidden), (hidden, hidden), (2 * ffn, hidden), (hidden, ffn))] for _ in range(8)]
    for tokens in (1, 8, 32, 64, 128, 256, 512, 608, 1024, 2048):
        xs = [torch.randn(tokens, k, device="cuda", dtype=torch.float16) for k in (hidden, hidden,
                hidden, ffn)]

        def layers():
            for w in ws:
                for x, m in zip(xs, w):
                    torch.nn.functional.linear(x, m)

        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            layers()
        torch.cuda.synchronize()
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            layers()
        sustained = timed(g.replay, 20, 15) / 8
        rested = []
        for _ in range(15):
            torch.cuda._sleep(40_000_000)
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            g.replay()
            b.record()
            b.synchronize()
            rested.append(a.elapsed_time(b) * 1e-3 / 8)
        print(f"{name} {tokens} {1e6 * sustained:.1f} {1e6 * statistics.median(rested):.1f}")
