"""Prefill attention of PyTorch's own kernels, fp16, causal: what gpubench's section prefill is
compared with, or, given the word minference, that section."""
import statistics
import sys

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


BACKENDS = (("flash", SDPBackend.FLASH_ATTENTION), ("cuDNN", SDPBackend.CUDNN_ATTENTION))


def dense(tokens, heads, backend, repeats=8):
    """Milliseconds of one call."""
    shape = (1, heads, tokens, 128)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(3))
    with sdpa_kernel(backend):
        attention = torch.nn.functional.scaled_dot_product_attention
        return milliseconds(lambda: attention(q, k, v, is_causal=True), repeats)


def prefill():
    for tokens in (8192, 32768):
        flops = 4 * 128 * 32 * tokens * (tokens + 1) / 2
        for name, backend in BACKENDS:
            try:
                ms = dense(tokens, 32, backend)
            except RuntimeError as error:
                print(f"  {name}, {tokens} tokens: not available ({str(error).splitlines()[0]})")
                continue
            what = f"torch {torch.__version__} {name}, prefill of {tokens} tokens, 32 heads"
            print(f"  {what}: {ms:.3f} ms, {flops / ms / 1e9:.0f} TFLOP/s")


def minference():
    """Rows of gpubench's table minference: milliseconds a head."""
    shapes = ((10000, 16), (32768, 32), (100000, 8), (300000, 4), (500000, 2), (1000000, 1))
    for tokens, heads in shapes:
        for name, backend in BACKENDS:
            ms = dense(tokens, heads, backend, 5 if tokens < 300000 else 2) / heads
            rate = 2 * 128 * tokens**2 / ms / 1e9
            kernel = f"torch-{name.lower()}"
            print(f"{tokens},{heads},{heads},{kernel},,{ms:.4f},0.0000,{rate:.0f},,,,,,")


minference() if sys.argv[1:] == ["minference"] else prefill()
