// Sums over the threads of a CTA.
#pragma once

#include "common.cuh"

namespace ss {

constexpr int kScanThreads = 256;

// Sum over the CTA's threads before this one, and over all.
__device__ inline uint32_t scan(uint32_t x, uint32_t *all) {
  __shared__ uint32_t warps[kScanThreads / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t sum = x;
  for (int d = 1; d < 32; d *= 2) {
    const uint32_t y = __shfl_up_sync(~0u, sum, d);
    if (lane >= d) sum += y;
  }
  __syncthreads();
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  uint32_t before = 0, total = 0;
  for (int w = 0; w < kScanThreads / 32; w++) {
    if (w < warp) before += warps[w];
    total += warps[w];
  }
  *all = total;
  return before + sum - x;
}

}  // namespace ss
