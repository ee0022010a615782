// Streams are kept for the next caller: on any stream but the first that a process used, and on
// that one too once others have been used, kernels follow each other tenths of a microsecond later
// (measured/h200-streams.txt). So runs of one process compare only on the same streams.
#include <deque>
#include <mutex>

#include "common.cuh"

namespace ss {

struct KeptStream {
  cudaStream_t stream;
  int device;
  bool high;
  bool taken;
};
static std::mutex streams_lock;
static std::deque<KeptStream> kept_streams;  // by age: a sole caller always gets the first

int take_stream(cudaStream_t *out, bool high) {
  int device = 0;
  SS_CUDA(cudaGetDevice(&device));
  std::lock_guard<std::mutex> guard(streams_lock);
  for (KeptStream &kept : kept_streams) {
    if (kept.taken || kept.device != device || kept.high != high) continue;
    kept.taken = true;
    *out = kept.stream;
    return SS_OK;
  }
  int low = 0, highest = 0;
  SS_CUDA(cudaDeviceGetStreamPriorityRange(&low, &highest));
  cudaStream_t stream = nullptr;
  SS_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, high ? highest : low));
  kept_streams.push_back({stream, device, high, true});
  *out = stream;
  return SS_OK;
}

static bool put_back(cudaStream_t stream) {
  std::lock_guard<std::mutex> guard(streams_lock);
  for (KeptStream &kept : kept_streams) {
    if (kept.stream != stream || !kept.taken) continue;
    kept.taken = false;
    return true;
  }
  return false;
}

static bool is_taken(cudaStream_t stream) {
  std::lock_guard<std::mutex> guard(streams_lock);
  for (const KeptStream &kept : kept_streams)
    if (kept.stream == stream && kept.taken) return true;
  return false;
}

void drop_stream(cudaStream_t stream) {
  cudaStreamSynchronize(stream);  // the next user's work would wait for this one's
  put_back(stream);
}

}  // namespace ss

extern "C" int ss_stream_create(ss_stream *out, int32_t high_priority) {
  SS_NEED(out != nullptr);
  cudaStream_t stream = nullptr;
  SS_TRY(ss::take_stream(&stream, high_priority != 0));
  *out = stream;
  return SS_OK;
}

extern "C" int ss_stream_destroy(ss_stream stream) {
  if (!ss::is_taken(ss::stream_of(stream)))
    return ss::fail(SS_ERR_ARGUMENT,
                    "ss_stream_destroy: %p is not from ss_stream_create, or was given back",
                    stream);
  const int code = ss::check(cudaStreamSynchronize(ss::stream_of(stream)), "cudaStreamSynchronize");
  ss::put_back(ss::stream_of(stream));
  return code;
}
extern "C" int ss_stream_sync(ss_stream stream) {
  return ss::check(cudaStreamSynchronize(ss::stream_of(stream)), "cudaStreamSynchronize");
}

extern "C" int ss_stream_wait(ss_stream stream, ss_event event) {
  return ss::check(cudaStreamWaitEvent(ss::stream_of(stream), static_cast<cudaEvent_t>(event), 0),
                   "cudaStreamWaitEvent");
}
