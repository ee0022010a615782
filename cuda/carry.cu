// Carries one array across the link, up from pinned host memory or down to it, with a kernel of its
// own.
//
//   dst[0 .. bytes) = src[0 .. bytes)      dst = src modulo 16
//
// It is for what a layer's kernels read and the host has just written: some KiB between two kernels
// of one stream. A memcpy there hands the stream to the copy engine and back, at any size. A
// kernel that reads the host's memory itself costs a launch and one round trip over the link, then
// the bytes at the rate at which SMs read them; a memcpy is faster from some MB on.
//
// On the way down the copy engine also serves one queue: saves with a memcpy a block from another
// stream fill it, and a small selection would wait for all of them.
//
// The bytes before dst's first multiple of 16 and those after the last go one a thread, all others
// in words of 16 bytes.
#include "carry.cuh"

namespace ss {

__global__ void __launch_bounds__(kCarryThreads)
    carry_kernel(char *dst, const char *src, int head, int64_t words, int tail) {
  const char *from = src + head;
  char *to = dst + head;
  copy_words(to, from, words);
  // By the last CTA, which has the fewest words.
  if (blockIdx.x != gridDim.x - 1) return;
  if (int(threadIdx.x) < head) dst[threadIdx.x] = src[threadIdx.x];
  if (int(threadIdx.x) < tail) to[words * 16 + threadIdx.x] = from[words * 16 + threadIdx.x];
}

}  // namespace ss

extern "C" int ss_carry(const ss_memcpy_args *args, ss_stream stream) {
  SS_NEED(args != nullptr);
  SS_NEED(args->bytes >= 0);
  if (args->bytes == 0) return SS_OK;
  SS_NEED(args->dst != nullptr && args->src != nullptr);
  SS_NEED(uintptr_t(args->dst) % 16 == uintptr_t(args->src) % 16);
  const int64_t before = (16 - uintptr_t(args->dst) % 16) % 16;
  const int head = int(before < args->bytes ? before : args->bytes);
  const int64_t words = (args->bytes - head) / 16;
  const int tail = int((args->bytes - head) % 16);
  const int64_t wanted = ss::ceil_div64(words > 0 ? words : 1, ss::kCarryThreads);
  const int ctas = int(wanted < ss::kCarryCtas ? wanted : ss::kCarryCtas);
  ss::carry_kernel<<<ctas, ss::kCarryThreads, 0, ss::stream_of(stream)>>>(
      static_cast<char *>(args->dst), static_cast<const char *>(args->src), head, words, tail);
  return ss::check(cudaGetLastError(), "carry_kernel");
}
