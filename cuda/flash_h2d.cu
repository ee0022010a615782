// FlashH2D (SparseServe 3.2.1): one kernel gathers KV blocks from pinned host memory into HBM through unified virtual addressing.
//
// Little's law sizes it: a PCIe 5 link of 55 GB/s with about 2 us of latency needs some 110 KB in flight, 27 warps of 4 KiB each. A few
// CTAs fill the link; the rest of the GPU stays free for compute beside it.
#include "copy_blocks.cuh"

extern "C" int ss_flash_h2d(const ss_blocks_args *args, ss_stream stream) {
  SS_TRY(ss::check_blocks(args));
  ss::Limits found;
  SS_TRY(ss::limits(&found));
  return ss::launch_copy_blocks(args, args->ctas > 0 ? args->ctas : found.sm_count, ss::stream_of(stream));
}
