// The copy-engine baseline, either direction: one cudaMemcpyAsync per block.
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
