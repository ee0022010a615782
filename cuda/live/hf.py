"""Writes tiny LlamaForCausalLM folders (fp16 safetensors) and what HuggingFace computes with them:
python3 hf.py FOLDER

Next to each model is expected.json: prompts, greedy continuations and the logits after the prompt,
in fp32 and in fp16. A prompt is the one of CANDIDATES random ones whose greedy path is clearest in
fp32: the smallest difference of best and second logit on the way, which is written too.
The Go tests find FOLDER by SPARSESERVE_HF_FIXTURES.
"""
import json
import os
import sys

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

CANDIDATES = 32
GREEDY = 32
LENGTHS = (5, 37, 130)
VERSION = tuple(int(n) for n in transformers.__version__.split(".")[:2])
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64}
LINEAR = {"rope_type": "linear", "factor": 4.0}
SMALL = dict(hidden=192, heads=3, kv=3, dim=64, ffn=344, vocab=503)
MODELS = {
    "mha": SMALL,
    "gqa4": dict(hidden=256, heads=8, kv=2, dim=64, ffn=512, vocab=512),
    # heads are wider than hidden
    "odd": dict(hidden=200, heads=8, kv=2, dim=64, ffn=344, vocab=509),
    "llama3": dict(hidden=256, heads=4, kv=1, dim=128, ffn=344, vocab=503, theta=500000.0,
            rope=LLAMA3, eps=1e-5),
    "linear": dict(hidden=192, heads=6, kv=3, dim=64, ffn=344, vocab=503, rope=LINEAR),
    "tied": dict(SMALL, tied=True),
    "sharded": dict(SMALL, shard="300KB"),
}


def configuration(m):
    theta, rope = m.get("theta", 10000.0), m.get("rope")
    if VERSION >= (5, 0):
        names = {"rope_parameters": {"rope_type": "default", "rope_theta": theta, **(rope or {})}}
    else:
        names = {"rope_theta": theta, "rope_scaling": rope}
    return LlamaConfig(
        num_hidden_layers=2, hidden_size=m["hidden"], num_attention_heads=m["heads"],
                num_key_value_heads=m["kv"], head_dim=m["dim"],
        intermediate_size=m["ffn"], vocab_size=m["vocab"], max_position_embeddings=1024,
                rms_norm_eps=m.get("eps", 1e-6),
        tie_word_embeddings=m.get("tied", False), bos_token_id=None, eos_token_id=None,
                pad_token_id=None, **names)


def write_model(folder, m):
    model = LlamaForCausalLM(configuration(m))
    # linears that keep variances, norms around 1: every weight counts
    for name, p in model.named_parameters():
        p.normal_()
        if p.dim() == 1:
            p.mul_(0.2).add_(1)
        elif "embed_tokens" not in name:
            p.mul_(p.shape[1] ** -0.5)
    model.half().save_pretrained(folder, **({"max_shard_size": m["shard"]} if "shard" in m else {}))


def load(folder, dtype):
    """Not model.half(), which would round the rotary frequencies too."""
    name = "dtype" if VERSION >= (4, 56) else "torch_dtype"
    attention = "eager" if dtype == torch.float32 else "sdpa"
    model = LlamaForCausalLM.from_pretrained(folder, attn_implementation=attention,
            **{name: dtype}).to(DEVICE).eval()
    assert next(model.parameters()).dtype == dtype
    assert model.model.rotary_emb.inv_freq.dtype == torch.float32
    return model


def last_logits(model, tokens):
    """[batch][vocab] in fp32: the whole sequence anew, with no cache as part of the reference."""
    return model(input_ids=tokens, use_cache=False).logits[:, -1].float()


def greedy(model, tokens):
    """The continuations [batch][GREEDY] and the smallest difference to the second best of each."""
    prompt = tokens.shape[1]
    margin = torch.full((tokens.shape[0],), torch.inf, device=DEVICE)
    for _ in range(GREEDY):
        best = last_logits(model, tokens).topk(2)
        margin = torch.minimum(margin, best.values[:, 0] - best.values[:, 1])
        tokens = torch.cat([tokens, best.indices[:, :1]], dim=1)
    return tokens[:, prompt:], margin


def main(out):
    torch.set_grad_enabled(False)
    torch.manual_seed(20261121)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    for name, m in MODELS.items():
        folder = os.path.join(out, name)
        write_model(folder, m)
        exact, low = load(folder, torch.float32), load(folder, torch.float16)
        cases = []
        for length in LENGTHS:
            prompts = torch.randint(m["vocab"], (CANDIDATES, length)).to(DEVICE)
            tokens, margin = greedy(exact, prompts)
            best = int(margin.argmax())
            prompt = prompts[best : best + 1]
            cases.append({
                "prompt": prompt[0].tolist(), "margin": margin[best].item(),
                "greedy32": tokens[best].tolist(), "logits32": last_logits(exact,
                        prompt)[0].tolist(),
                "greedy16": greedy(low, prompt)[0][0].tolist(), "logits16": last_logits(low,
                        prompt)[0].tolist(),
            })
        with open(os.path.join(folder, "expected.json"), "w") as file:
            json.dump({"torch": torch.__version__, "transformers": transformers.__version__,
                    "device": DEVICE, "cases": cases}, file)
        same = sum(c["greedy16"] == c["greedy32"] for c in cases)
        print(f"{name}: margins {', '.join(format(c['margin'], '.3f') for c in cases)}; "
              f"fp16 picks the same tokens in {same} of {len(cases)}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
