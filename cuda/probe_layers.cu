// Prefill overlapped with KV saves. One host thread enqueues the compute of layers, another waits
// for each layer and saves it.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "common.cuh"
#include "probe_layers.h"

namespace ss {

// Streams and an event for each layer; freed on every return.
struct LayerStreams {
  cudaStream_t compute = nullptr, save = nullptr;
  std::vector<cudaEvent_t> computed;

  int open(int layers) {
    SS_TRY(take_stream(&compute, true));
    SS_TRY(take_stream(&save, false));
    for (int i = 0; i < layers; i++) {
      cudaEvent_t event = nullptr;
      SS_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
      computed.push_back(event);
    }
    return SS_OK;
  }

  ~LayerStreams() {
    for (cudaEvent_t event : computed) cudaEventDestroy(event);
    if (compute != nullptr) drop_stream(compute);
    if (save != nullptr) drop_stream(save);
  }
};

static int save_layer(const ss_layers_args &a, int layer, cudaStream_t stream) {
  const int each = a.each > 0 ? a.each : a.n_save;
  return run_calls(a.save + layer % (a.n_save / each) * each, each, stream);
}

// The second thread: saves layers as they are computed. enqueued counts layers whose event is
// recorded; stop: no more will come. saved counts layers that are in DRAM, where they are
// buffered; ended: no more will be.
struct LayerSaver {
  const ss_layers_args &a;
  const LayerStreams &streams;
  int device;
  std::atomic<int> enqueued{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable moved;
  int saved = 0;
  bool ended = false;
  int code = SS_OK;
  char text[512] = "";

  int loop() {
    SS_CUDA(cudaSetDevice(device));
    for (int layer = 0; layer < a.layers; layer++) {
      while (enqueued.load() <= layer) {
        if (stop.load()) return SS_OK;
        std::this_thread::yield();
      }
      if (a.buffered == 0) {
        SS_CUDA(cudaEventSynchronize(streams.computed[size_t(layer)]));
        SS_TRY(save_layer(a, layer, streams.save));
        continue;
      }
      SS_CUDA(cudaStreamWaitEvent(streams.save, streams.computed[size_t(layer)], 0));
      SS_TRY(save_layer(a, layer, streams.save));
      SS_CUDA(cudaStreamSynchronize(streams.save));
      std::lock_guard<std::mutex> lock(mutex);
      saved++;
      moved.notify_all();
    }
    SS_CUDA(cudaStreamSynchronize(streams.save));
    return SS_OK;
  }

  void run() {
    code = loop();
    if (code != SS_OK) snprintf(text, sizeof text, "%s", ss_last_error());
    std::lock_guard<std::mutex> lock(mutex);
    ended = true;
    moved.notify_all();
  }

  // fits waits until a layer fits the buffer; false: no more are saved.
  bool fits(int layer) {
    std::unique_lock<std::mutex> lock(mutex);
    moved.wait(lock, [&] { return layer - saved < a.buffered || ended; });
    return layer - saved < a.buffered;
  }
};

static int compute_layers(const ss_layers_args &a, const LayerStreams &streams, LayerSaver *saver) {
  for (int layer = 0; layer < a.layers; layer++) {
    if (a.buffered > 0 && a.n_save > 0 && !saver->fits(layer)) break;  // the saver's code has why
    SS_TRY(run_calls(a.compute, a.n_compute, streams.compute));
    SS_CUDA(cudaEventRecord(streams.computed[size_t(layer)], streams.compute));
    saver->enqueued.fetch_add(1);
  }
  SS_CUDA(cudaStreamSynchronize(streams.compute));
  return SS_OK;
}

static int one_prefill(const ss_layers_args &a, const LayerStreams &streams, float *ms) {
  LayerSaver saver{a, streams, 0};
  SS_CUDA(cudaGetDevice(&saver.device));
  const auto from = std::chrono::steady_clock::now();
  std::thread thread;
  if (a.n_save > 0) thread = std::thread([&saver] { saver.run(); });
  const int code = compute_layers(a, streams, &saver);
  if (code != SS_OK) saver.stop = true;
  if (thread.joinable()) thread.join();
  *ms = std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - from).count();
  if (code != SS_OK) return code;
  if (saver.code != SS_OK) return fail(saver.code, "saving: %s", saver.text);
  return SS_OK;
}

}  // namespace ss

extern "C" int ss_bench_prefill(const ss_layers_args *args) {
  SS_NEED(args != nullptr && args->compute != nullptr && args->samples != nullptr);
  SS_NEED(args->n_compute > 0 && args->n_save >= 0 && args->layers > 0 && args->buffered >= 0);
  SS_NEED(args->n_save == 0 || args->save != nullptr);
  SS_NEED(args->each >= 0 && (args->each == 0 || args->n_save % args->each == 0));
  SS_NEED(args->warmup >= 0 && args->repeats > 0);
  ss::LayerStreams streams;
  SS_TRY(streams.open(args->layers));
  float ignored = 0;
  for (int i = 0; i < args->warmup; i++) SS_TRY(ss::one_prefill(*args, streams, &ignored));
  for (int i = 0; i < args->repeats; i++)
    SS_TRY(ss::one_prefill(*args, streams, &args->samples[i]));
  return SS_OK;
}
