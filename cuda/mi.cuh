// What a tile of MInference's sparse prefill attends to (ss_mi_attend_args in sparseserve.h).
#pragma once

#include "common.cuh"

namespace ss {

constexpr int kMiQueries = 128;  // a tile of queries: two halves, each with blocks of its own
constexpr int kMiBlock = 64;     // queries of a half, keys of a block
constexpr int kNoBlock =
    0x3fffff00;  // a start past all keys: nothing is there and no query sees it
constexpr int kColumnBits =
    0x3fffffff;  // of an entry of a list of columns, the key; bit 30 + h: half h does not see it

// The blocks of a tile of queries, 64 keys each, in the order of a walk: blocks for both halves,
// gathered columns (whole tiles of keys), then blocks for one half only.
struct MiPlan {
  const int32_t *list, *column;      // NULL: sink and window
  int both, first, second, columns;  // list: blocks; columns: keys
  int top;                           // sink and window: one past the newest block
  int window_blocks;

  // Without a list: blocks from the newest to the window's end, then the sink's.
  __device__ int start(int i) const {
    if (list != nullptr) return list[i];
    return (i < window_blocks ? top - 1 - i : both - 1 - i) * kMiBlock;
  }
};

__device__ inline MiPlan mi_plan(const ss_mi_attend_args &a, int head, int tile, int tiles) {
  const ss_prefill_args &p = a.prefill;
  MiPlan plan = {};
  if (a.blocks != nullptr) {
    const int64_t row = int64_t(head) * tiles + tile;
    const int4 count = *reinterpret_cast<const int4 *>(a.counts + row * 4);
    plan.list = a.blocks + row * a.block_stride;
    plan.column = a.columns + row * a.column_stride;
    plan.both = count.x, plan.first = count.y, plan.second = count.z, plan.columns = count.w;
    return plan;
  }
  const int oldest = p.prefix + tile * kMiQueries;  // position of the tile's first query
  plan.top = (min(oldest + kMiQueries, p.prefix + p.q_tokens) + kMiBlock - 1) / kMiBlock;
  const int last = a.window > 0 ? max(0, oldest - a.window + 1) / kMiBlock : 0;
  plan.window_blocks = plan.top - last;
  plan.both = plan.window_blocks + min((a.sink + kMiBlock - 1) / kMiBlock, last);
  return plan;
}

// Whether the A-shape lets a query at `position` see `key`; window 0: all that is not newer.
__device__ inline bool mi_visible(const ss_mi_attend_args &a, int key, int position) {
  return key <= position && (a.window == 0 || position - key < a.window || key < a.sink);
}

// The kernel of sm_90a, where the library has it, and the one of sm_80 and newer.
bool mi_hopper_built();
int mi_on_hopper(const ss_prefill_args &p, bool *yes);
int mi_hopper(const ss_mi_attend_args &args, cudaStream_t stream);
int mi_ampere(const ss_mi_attend_args &args, cudaStream_t stream);

}  // namespace ss
