// Copies small arrays between pinned memory and the GPU's with all threads of a kernel.
#pragma once

#include "common.cuh"

namespace ss {

// One word a thread puts 128 KiB in flight with 32 CTAs, about what a PCIe 5 link's round trip
// holds (copy_blocks.cuh). Larger arrays have kCarryWords a thread in flight rather than more CTAs,
// so that an array of a few hundred KiB still needs one round trip.
constexpr int kCarryThreads = 256;
constexpr int kCarryCtas = 32;
constexpr int kCarryWords = 4;

// Copies words of 16 bytes by all threads of the grid.
__device__ inline void copy_words(char *dst, const char *src, int64_t words) {
  const int64_t threads = int64_t(gridDim.x) * blockDim.x,
                thread = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t first = thread; first < words; first += threads * kCarryWords) {
    uint4 value[kCarryWords];
#pragma unroll
    for (int i = 0; i < kCarryWords; i++)
      if (first + i * threads < words)
        value[i] = __ldcg(reinterpret_cast<const uint4 *>(src + (first + i * threads) * 16));
#pragma unroll
    for (int i = 0; i < kCarryWords; i++)
      if (first + i * threads < words)
        *reinterpret_cast<uint4 *>(dst + (first + i * threads) * 16) = value[i];
  }
}

}  // namespace ss
