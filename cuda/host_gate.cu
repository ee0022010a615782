// Holds a stream until the host opens it, then copies the host's data: work that depends on the
// host's answer is launched before the answer is known, and no launch follows it.
//
//   wait until gate >> SS_GATE_BITS >= turn
//   n = gate mod 2^SS_GATE_BITS
//   dst[0 .. bytes) = src[0 .. bytes)
//   row_dst[i][0 .. n) = row_src[i][0 .. n)      i = 0 .. rows - 1, rows of 8 bytes an element
//   counted = n
//
// Rows are as long as the host decides: addresses that a gather reads, block after block, should be
// in HBM. The gate is one word in pinned memory, so that the turn and what comes with it are read
// in one round trip over the link. One CTA polls and copies: the host's store waits for the polls
// of all, and 64 KiB in flight are enough for what a layer brings. All words are one range, so that
// they come in one round trip.
#include "carry.cuh"

namespace ss {

__device__ inline uint64_t read_gate(const uint64_t *gate) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(gate) : "memory");
  return value;
}

constexpr int kGateThreads = 1024;

// Offset in bytes of a word in rows of n words.
__device__ inline int64_t place(int word, int row, int64_t pitch) {
  return word / row * pitch + word % row * 16;
}

__global__ void __launch_bounds__(kGateThreads) host_gate_kernel(ss_host_gate_args a) {
  __shared__ int64_t number;
  if (threadIdx.x == 0) {
    uint64_t value;
    do value = read_gate(a.gate);
    while ((value >> SS_GATE_BITS) < uint64_t(a.turn));
    number = int64_t(value & ((uint64_t(1) << SS_GATE_BITS) - 1));
    if (a.counted != nullptr) *a.counted = number;
  }
  __syncthreads();
  auto *src = static_cast<const char *>(a.src), *row_src = static_cast<const char *>(a.row_src);
  auto *dst = static_cast<char *>(a.dst), *row_dst = static_cast<char *>(a.row_dst);
  // A row of odd length is copied one element further.
  const int own = int(a.bytes / 16), row = int((number + 1) / 2);
  const int words = own + a.rows * row;
  for (int first = threadIdx.x; first < words; first += kGateThreads * kCarryWords) {
    uint4 value[kCarryWords];
#pragma unroll
    for (int i = 0; i < kCarryWords; i++)
      if (const int at = first + i * kGateThreads; at < words)
        value[i] = __ldcg(reinterpret_cast<const uint4 *>(
            at < own ? src + int64_t(at) * 16 : row_src + place(at - own, row, a.pitch)));
#pragma unroll
    for (int i = 0; i < kCarryWords; i++)
      if (const int at = first + i * kGateThreads; at < words)
        *reinterpret_cast<uint4 *>(
            at < own ? dst + int64_t(at) * 16 : row_dst + place(at - own, row, a.pitch)) = value[i];
  }
}

}  // namespace ss

extern "C" int ss_host_gate(const ss_host_gate_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->gate != nullptr && uintptr_t(args->gate) % 8 == 0);
  SS_NEED(args->bytes >= 0 && args->bytes % 16 == 0 && args->bytes < (int64_t(1) << 30));
  SS_NEED(args->bytes == 0 || (args->dst != nullptr && args->src != nullptr));
  SS_NEED(uintptr_t(args->dst) % 16 == 0 && uintptr_t(args->src) % 16 == 0);
  SS_NEED(args->turn >= 0);
  SS_NEED(args->rows >= 0 && args->rows <= 64 && args->pitch >= 0 && args->pitch % 16 == 0);
  SS_NEED(args->rows == 0 || (args->row_dst != nullptr && args->row_src != nullptr));
  SS_NEED(uintptr_t(args->row_dst) % 16 == 0 && uintptr_t(args->row_src) % 16 == 0);
  ss::host_gate_kernel<<<1, ss::kGateThreads, 0, ss::stream_of(stream)>>>(*args);
  return ss::check(cudaGetLastError(), "host_gate_kernel");
}
