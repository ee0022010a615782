"""Prefill attention of PyTorch's own kernels, the reference of gpubench's prefill section: 32 heads of 128, fp16, causal."""
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def milliseconds(call, repeats=8):
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    samples = []
    for i in range(repeats + 2):
        start.record()
        call()
        stop.record()
        stop.synchronize()
        if i >= 2:  # warm-up
            samples.append(start.elapsed_time(stop))
    return statistics.median(samples)


for tokens in (8192, 32768):
    q, k, v = (torch.randn(1, 32, tokens, 128, device="cuda", dtype=torch.float16) for _ in range(3))
    flops = 4 * 128 * 32 * tokens * (tokens + 1) / 2
    for name, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cuDNN", SDPBackend.CUDNN_ATTENTION)):
        try:
            with sdpa_kernel(backend):
                ms = milliseconds(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
        except RuntimeError as error:
            print(f"  {name}, {tokens} tokens: not available ({str(error).splitlines()[0]})")
            continue
        print(f"  torch {torch.__version__} {name}, prefill of {tokens} tokens, 32 heads: {ms:.3f} ms, {flops / ms / 1e9:.0f} TFLOP/s")
