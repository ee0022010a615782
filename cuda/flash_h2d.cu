// FlashH2D (SparseServe 3.2.1): one kernel gathers KV blocks from pinned host memory into HBM
// through unified virtual addressing.
//
// It reaches about 0.925 of a large memcpy whatever its shape: an SM's reads of host memory are
// smaller requests than the copy engine's, with more of the link spent on headers.
#include "copy_blocks.cuh"

extern "C" int ss_flash_h2d(const ss_blocks_args *args, ss_stream stream) {
  SS_TRY(ss::check_blocks(args));
  return ss::launch_copy_blocks(args, ss::stream_of(stream));
}
