// The baseline of SparseServe 3.2.2 and Fig. 14b: a kernel that writes KV blocks straight to pinned
// host memory. It reaches the link's speed but occupies SMs while it runs, which
// FlashD2H does not.
#include "copy_blocks.cuh"

extern "C" int ss_gpu_scatter(const ss_blocks_args *args, ss_stream stream) {
  SS_TRY(ss::check_blocks(args));
  return ss::launch_copy_blocks(args, ss::stream_of(stream));
}
