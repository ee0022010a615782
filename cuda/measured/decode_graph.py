"""Times decode attention of FlashAttention-2 (PyTorch's, split over KV), launched one by one and in
a CUDA graph: what published times of eager calls have that an engine with graphs does not pay.

    python3 cuda/measured/decode_graph.py > cuda/measured/decode-graph-CARD.txt

Needs PyTorch. Each time is the median over samples of 16 calls on K and V of their own, divided by
16.
"""
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

torch.manual_seed(1)
print(torch.cuda.get_device_name(), "torch", torch.__version__, "cuda", torch.version.cuda)
CALLS, SAMPLES, DIM = 16, 15, 128


def timed(run):
    times = []
    for _ in range(SAMPLES + 3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(1e3 * start.elapsed_time(end) / CALLS)
    return statistics.median(times[3:])


print("query heads, KV heads, requests, tokens: us launched, us in a graph, GB/s")
for heads, kv in ((32, 32), (32, 8), (32, 4)):
    for batch in (1, 16, 32, 64):
        for tokens in (512, 1024, 4096):
            size = 4 * batch * kv * tokens * DIM
            if size * CALLS > 20e9:
                continue
            q = torch.randn(batch, heads, 1, DIM, device="cuda", dtype=torch.float16)
            pairs = [(torch.randn(batch, kv, tokens, DIM, device="cuda", dtype=torch.float16),
                    torch.randn(batch, kv, tokens, DIM, device="cuda", dtype=torch.float16))
                    for _ in range(CALLS)]

            def run():
                with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                    for k, v in pairs:
                        scaled_dot_product_attention(q, k, v, enable_gqa=heads != kv)
            eager = timed(run)
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                run()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                run()
            replayed = timed(graph.replay)
            print(heads, kv, batch, tokens, f"{eager:.1f} {replayed:.1f}",
                    f"{size / replayed * 1e-3:.0f}", flush=True)
            del pairs, graph
