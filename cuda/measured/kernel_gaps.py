"""What kernels of the live loop's layers take in their row, and how far apart they are, from
traces of kernel_trace.c.

    python3 cuda/measured/kernel_gaps.py TRACE...

Steps begin with the kernel that embeds tokens. Those that decode, those that prefill and those
that do both are apart; each layer is the mean of all of a step's. A gap of 8 us and more is the
host's, or that between two steps, and is left out; so is what runs for 0.2 s and more, the
matrices that warm the card before a run among them.
"""

import collections
import re
import struct
import sys

RECORD, LAYERS, LONGEST, STEP = struct.Struct("<QIHHII"), 32, 8e3, 2e8
ATTENTION = {"prefill", "mi_hopper"}


def short(name):
    """The name of a kernel as its source has it; matrices of cuBLAS are one."""
    own = re.match(r"_ZN2ss\d+([a-z0-9_]+?)_kernel", name)
    if own:
        return own.group(1)
    return "linear" if name.startswith("nvjet") or "splitKreduce" in name else name[:24]


def read(path):
    names = {}
    with open(path + ".names") as f:
        for line in f:
            if not line.startswith("#"):
                i, name = line.rstrip("\n").split("\t")
                names[int(i)] = short(name)
    with open(path + ".bin", "rb") as f:
        data = f.read()
    all = list(RECORD.iter_unpack(data[: len(data) // RECORD.size * RECORD.size]))
    stream = collections.Counter(r[3] for r in all).most_common(1)[0][0]
    return sorted((r[0], r[1], names[r[2]]) for r in all if r[3] == stream)


def kind(names):
    prefills, decodes = bool(names & ATTENTION), "decode" in names
    return {(1, 0): "prefill", (0, 1): "decode", (1, 1): "both"}.get((prefills, decodes))


def main():
    for path in sys.argv[1:]:
        rows = read(path)
        begins = [i for i, r in enumerate(rows) if r[2] == "embed"]
        total = collections.defaultdict(collections.Counter)
        for a, b in zip(begins, begins[1:]):
            step = rows[a:b]
            if sum(r[1] for r in step) > STEP:
                continue
            of = total[kind({r[2] for r in step})]
            of["steps"] += 1
            for now, then in zip(step, step[1:]):
                gap = then[0] - now[0] - now[1]
                of["kernels"] += 1
                of["us " + now[2]] += now[1] / 1e3
                if gap < LONGEST:
                    of["gap"] += max(0, gap) / 1e3
        for what, of in sorted(total.items(), key=str):
            n = of["steps"] * LAYERS
            if what and n:
                parts = ", ".join(f"{k[3:]} {v / n:.1f}" for k, v in of.most_common()
                                  if k.startswith("us ") and v / n >= 0.5)
                print(f"{path.split('/')[-1]}, {what}: {of['steps']} steps, a layer: "
                      f"{of['kernels'] / n:.1f} kernels, {of['gap'] / n:.1f} us between them; "
                      f"us: {parts}")


main()
