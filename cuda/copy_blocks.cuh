// Copies many small blocks in one kernel, at any addresses that the GPU can reach (HBM or pinned
// host memory).
//
//   dst[i][0 .. block_bytes) = src[i][0 .. block_bytes)      i = 0 .. count - 1
//
// A block is split into rows of 512 bytes, one 16-byte access a lane. A warp has kRows rows in
// flight, of one block or of several, so blocks of 1 KiB keep the link as full as blocks of 1 MiB.
// Consecutive warps copy consecutive rows: the link sees neighbouring addresses together.
#pragma once

#include "common.cuh"

namespace ss {

constexpr int kRowBytes = 512;
constexpr int kRows = 8;
constexpr int kCopyThreads = 256, kMostCopyThreads = 1024;

__device__ inline uint4 load_streaming(const void *p) {
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

__device__ inline void store_streaming(void *p, uint4 v) {
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}

static __global__ void __launch_bounds__(kMostCopyThreads)
    copy_blocks_kernel(const uint64_t *src, const uint64_t *dst, const int32_t *owner,
                       const int32_t *skip, int64_t count, const int64_t *counted,
                       uint32_t block_bytes) {
  if (counted != nullptr) count = min(count, *counted);
  const uint32_t rows_per_block = (block_bytes + kRowBytes - 1) / kRowBytes;
  const int64_t rows = count * rows_per_block;
  const int64_t warps = int64_t(gridDim.x) * (blockDim.x / 32);
  const int64_t warp = int64_t(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  const uint32_t lane_byte = threadIdx.x % 32 * 16;

  for (int64_t first = warp * kRows; first < rows; first += warps * kRows) {
    int64_t block = first / rows_per_block;
    uint32_t row = uint32_t(first - block * rows_per_block);
    uint64_t to[kRows];
    uint4 value[kRows];
#pragma unroll
    for (int r = 0; r < kRows; r++) {
      const uint32_t byte = row * kRowBytes + lane_byte;
      to[r] = 0;
      if (first + r < rows && byte < block_bytes && (skip == nullptr || skip[owner[block]] == 0)) {
        to[r] = dst[block] + byte;
        value[r] = load_streaming(reinterpret_cast<const void *>(src[block] + byte));
      }
      if (++row == rows_per_block) row = 0, block++;
    }
#pragma unroll
    for (int r = 0; r < kRows; r++)
      if (to[r] != 0) store_streaming(reinterpret_cast<void *>(to[r]), value[r]);
  }
}

inline int check_blocks(const ss_blocks_args *args) {
  SS_NEED(args != nullptr);
  SS_NEED(args->count >= 0);
  SS_NEED(args->block_bytes > 0 && args->block_bytes % 16 == 0 && args->block_bytes <= (1 << 30));
  SS_NEED(args->ctas >= 0);
  SS_NEED((args->owner == nullptr) == (args->skip == nullptr));
  SS_NEED(args->count == 0 || (args->src != nullptr && args->dst != nullptr));
  return SS_OK;
}

// Little's law sizes the launch: a PCIe 5 link of 55 GB/s and 2 us needs some 110 KB in flight, 27
// warps of 4 KiB each. Eight CTAs have 64 warps and fill it. More would not copy faster, but would
// queue at the link for the whole GPU: overlapped compute then waits many times longer for its own
// memory. Fewer CTAs have as many warps in all: a copy that overlaps with computation holds fewer
// SMs, since others share none with a CTA of 1024 threads, and kernels of one wave on most SMs
// still need one.
constexpr int kCopyCtas = 8;

inline int launch_copy_blocks(const ss_blocks_args *args, cudaStream_t stream) {
  if (args->count == 0) return SS_OK;
  const int wanted = args->ctas > 0 ? args->ctas : kCopyCtas;
  const int each = kCopyCtas * kCopyThreads / wanted;
  const int threads = each < kCopyThreads ? kCopyThreads
                      : each > kMostCopyThreads ? kMostCopyThreads : each / 32 * 32;
  const int64_t rows = args->count * ceil_div64(args->block_bytes, kRowBytes);
  const int64_t useful = ceil_div64(rows, int64_t(kRows) * (threads / 32));
  const int ctas = int(useful < wanted ? useful : wanted);
  copy_blocks_kernel<<<ctas, threads, 0, stream>>>(args->src, args->dst, args->owner,
                                                        args->skip, args->count, args->counted,
                                                        uint32_t(args->block_bytes));
  return check(cudaGetLastError(), "copy_blocks_kernel");
}

}  // namespace ss
