// FlashH2D (SparseServe 3.2.1): one kernel gathers KV blocks from pinned host memory into HBM through unified virtual addressing.
//
// An SM reads host memory in requests of 128 bytes, the copy engine in larger ones: a kernel therefore reaches about 0.925 of a large memcpy,
// whatever its shape (loads of any width or cache hint, bulk copies and any number of CTAs from 8 up were measured alike on an H200).
#include "copy_blocks.cuh"

extern "C" int ss_flash_h2d(const ss_blocks_args *args, ss_stream stream) {
  SS_TRY(ss::check_blocks(args));
  return ss::launch_copy_blocks(args, ss::stream_of(stream));
}
