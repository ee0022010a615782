// Tiles of 64 queries and 64 keys on mma.sync, four warps a CTA.
#pragma once

#include "mi.cuh"
#include "mma.cuh"

namespace ss {

constexpr int kMiDim = 128;
constexpr int kMiThreads = 128;
constexpr int kMiTileBytes = kMiBlock * kMiDim * 2;

// Starts the copies of 64 rows to a swizzled tile; rows first + i, or the rows in `at`, from
// `limit` on become zeros.
template <typename At>
__device__ inline void mi_copy_rows(uint32_t tile, const __half *from, int64_t stride, int limit,
                                    At at) {
  const int piece = threadIdx.x % 16;
#pragma unroll
  for (int row = threadIdx.x / 16; row < kMiBlock; row += kMiThreads / 16) {
    const int token = at(row);
    copy_async(tile + swizzled<kMiDim>(row, piece),
               from + int64_t(token < limit ? token : 0) * stride + piece * 8, token < limit);
  }
  copy_commit();
}

// S of a warp's 16 queries and the 64 keys of a tile.
__device__ inline void mi_scores(float (&s)[8][4], uint32_t q_tile, uint32_t k_tile, int warp,
                                 int lane) {
#pragma unroll
  for (int n = 0; n < 8; n++) s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0;
#pragma unroll
  for (int k = 0; k < kMiDim / 16; k++) {
    uint32_t a[4], b[4];
    load_matrix(a, q_tile + swizzled<kMiDim>(warp * 16 + lane % 16, 2 * k + lane / 16));
#pragma unroll
    for (int n = 0; n < 4; n++) {
      load_matrix(
          b, k_tile + swizzled<kMiDim>(n * 16 + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
      mma16816(s[2 * n], a[0], a[1], a[2], a[3], b[0], b[1]);
      mma16816(s[2 * n + 1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
  }
}

}  // namespace ss
