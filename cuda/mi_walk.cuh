// What the roles of mi_hopper.cu's warps share: sizes, shared memory, the order of the tiles.
#pragma once

#include <cuda.h>

#include "mi.cuh"
#include "wgmma.cuh"

namespace ss {

constexpr int kDim = 128;
constexpr int kTileKeys = 128;
constexpr int kStages = 3;
constexpr int kTileBytes = kTileKeys * kDim * 2;
constexpr int kHalfBytes = kTileKeys * 128;       // 64 of the dimensions of a tile
constexpr int kQueryBytes = kMiBlock * kDim * 2;  // of one half of the queries
constexpr int kHopperThreads = 384;
constexpr int kConsumerWarps = 8;

// Shared memory, from a multiple of 1024 bytes.
struct MiShared {
  char q[2 * kQueryBytes];
  char k[kStages][kTileBytes];
  char v[kStages][kTileBytes];
  int32_t column[kStages][kTileKeys];  // entries of a tile of columns
  int2 start[kStages];                 // of a tile's two blocks; x < 0: a tile of columns
  uint64_t queries, full_k[kStages], empty_k[kStages], full_v[kStages], empty_v[kStages];
};
static_assert(sizeof(MiShared) <= 227 * 1024, "shared memory of a CTA");

// Tiles of keys in the order of the walk.
struct Walk {
  int both, shared, first, second;  // tiles; shared: tiles of both halves and the columns
  __device__ explicit Walk(const MiPlan &p)
      : both((p.both + 1) / 2),
        shared(both + (p.columns + kTileKeys - 1) / kTileKeys),
        first((p.first + 1) / 2),
        second((p.second + 1) / 2) {}
  __device__ int tiles() const { return shared + first + second; }
  __device__ int own(int half) const { return shared + (half ? second : first); }
  // Where in the walk a half has its tile `i`.
  __device__ int place(int half, int i) const {
    const int single = i - shared, paired = min(first, second);
    if (single < 0) return i;
    return shared + (single < paired ? 2 * single + half : paired + single);
  }
};

// The two blocks of tile `t`, which is not of columns.
__device__ inline int2 blocks_of(const MiPlan &p, const Walk &w, int t) {
  int at = 2 * t, end = p.both;
  if (t >= w.shared) {
    const int single = t - w.shared, paired = min(w.first, w.second);
    const bool second = single < 2 * paired ? single % 2 : w.second > w.first;
    at = p.both + (second ? p.first : 0) + 2 * (single < 2 * paired ? single / 2 : single - paired);
    end = p.both + p.first + (second ? p.second : 0);
  }
  return make_int2(p.start(at), at + 1 < end ? p.start(at + 1) : kNoBlock);
}

__device__ inline int stage_of(int t) { return t % kStages; }
__device__ inline int parity_of(int t) { return t / kStages & 1; }

// Waits until tile t's place in a ring is free.
__device__ inline void wait_free(const uint64_t *empty, int t) {
  if (t >= kStages) barrier_wait(shared_address(empty + stage_of(t)), parity_of(t) ^ 1);
}

}  // namespace ss
