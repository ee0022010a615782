// The copy-engine baselines, either direction: one cudaMemcpyAsync per block, and the batched
// memcpy API of CUDA 12.8 and newer.
#include <vector>

#include "copy_blocks.cuh"

extern "C" int ss_memcpy_blocks(const ss_blocks_args *args, ss_stream stream) {
  SS_TRY(ss::check_blocks(args));
  const size_t bytes = size_t(args->block_bytes);
  for (int64_t i = 0; i < args->count; i++) {
    void *dst = reinterpret_cast<void *>(args->dst[i]);
    const void *src = reinterpret_cast<const void *>(args->src[i]);
    SS_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, ss::stream_of(stream)));
  }
  return SS_OK;
}

#if CUDART_VERSION >= 12080

extern "C" int ss_memcpy_batch(const ss_blocks_args *args, ss_stream stream) {
  SS_TRY(ss::check_blocks(args));
  SS_NEED(stream != nullptr);  // the API refuses the default stream
  if (args->count == 0) return SS_OK;
  std::vector<size_t> sizes(size_t(args->count), size_t(args->block_bytes));
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0;
  auto dst = reinterpret_cast<void **>(const_cast<uint64_t *>(args->dst));
  auto src = reinterpret_cast<void **>(const_cast<uint64_t *>(args->src));
#if CUDART_VERSION >= 13000
  return ss::check(cudaMemcpyBatchAsync(const_cast<const void **>(dst),
                                        const_cast<const void **>(src), sizes.data(), sizes.size(),
                                        &attributes, &first, 1, ss::stream_of(stream)),
                   "cudaMemcpyBatchAsync");
#else
  size_t failed = 0;
  return ss::check(cudaMemcpyBatchAsync(dst, src, sizes.data(), sizes.size(), &attributes, &first,
                                        1, &failed, ss::stream_of(stream)),
                   "cudaMemcpyBatchAsync");
#endif
}

#else

extern "C" int ss_memcpy_batch(const ss_blocks_args *args, ss_stream) {
  SS_TRY(ss::check_blocks(args));
  return ss::fail(
      SS_ERR_UNSUPPORTED,
      "ss_memcpy_batch: not in this toolkit: the library was built with CUDA %d.%d, 12.8 is needed",
      CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
}

#endif
