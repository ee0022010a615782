// FlashD2H (SparseServe 3.2.2): save a contiguous KV tensor to scattered host blocks without using
// an SM.
//
//   staging[s] <- src[chunk]            copy engine, one memcpy a chunk, `stages` chunks in a ring
//   dst[i]     <- staging[s][block i]   CPU threads, streaming stores
//
// The ring lets the copy of one chunk overlap the scatter of the last. A chunk is small enough to
// be still in the CPU's last-level cache when the threads read it; streaming stores keep the
// destination from evicting it. All threads scatter; the first that is awake also drives the
// copies. A save does not wait for threads that the scheduler has not run yet: where other threads
// keep the CPUs busy, that may be a time slice of milliseconds.
#include <immintrin.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "common.cuh"

namespace ss {

// bytes is a multiple of 64; both addresses are multiples of 32.
__attribute__((target("avx2"))) static void stream_avx2(char *dst, const char *src, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64) {
    const __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i *>(src + at));
    const __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i *>(src + at + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i *>(dst + at), a);
    _mm256_stream_si256(reinterpret_cast<__m256i *>(dst + at + 32), b);
  }
}

static void stream_sse2(char *dst, const char *src, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 16)
    _mm_stream_si128(reinterpret_cast<__m128i *>(dst + at),
                     _mm_load_si128(reinterpret_cast<const __m128i *>(src + at)));
}

// Waits: first by spinning, then by yielding. With as many threads as CPUs, a thread that only spun
// would keep the thread that all wait for off the CPU.
struct Patience {
  int spins = 0;
  void wait() {
    if (++spins < 1024)
      _mm_pause();
    else
      sched_yield();
  }
};

struct Saver {
  // Fixed at creation.
  int device = 0;
  int stages = 0;
  int64_t chunk_bytes = 0;
  bool avx2 = false;
  char *staging = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<cudaEvent_t> copied;  // one a stage
  std::vector<std::thread> threads;

  // The save in hand; written before `epoch` moves on.
  ss_save_args job = {};
  int64_t blocks_per_chunk = 0, chunks = 0, pieces = 0;
  int64_t blocks_per_piece = 0, parts_per_block = 0, pieces_per_chunk = 0;

  std::mutex lock;
  std::condition_variable wake, idle;
  uint64_t epoch = 0;    // saves started
  bool running = false;  // the newest call
  bool driven = false;   // by a thread
  int inside = 0;        // threads that work at it
  bool stop = false;
  int code = SS_OK;
  char text[512] = "";

  std::atomic<uint64_t> epoch_seen{0};  // the same as epoch, for threads that spin
  std::atomic<int64_t> ready{0};        // chunks in staging; negative: the copy failed
  std::atomic<int64_t> next{0};         // pieces handed out
  std::unique_ptr<std::atomic<int64_t>[]> scattered;  // pieces done of each stage, over the save

  int64_t blocks_of(int64_t chunk) const {
    const int64_t left = job.count - chunk * blocks_per_chunk;
    return left < blocks_per_chunk ? left : blocks_per_chunk;
  }

  void scatter_piece(int64_t piece);
  void scatter();
  bool scatter_arrived();
  int drive();
  void run();
};

constexpr int64_t kPieceBytes = 32 << 10;  // of one ticket: microseconds of copying

// A piece is a run of small blocks of one chunk, or a part of one large block.
void Saver::scatter_piece(int64_t piece) {
  const int64_t chunk = piece / pieces_per_chunk, in_chunk = piece % pieces_per_chunk;
  int64_t begin = in_chunk / parts_per_block * blocks_per_piece, end = begin + blocks_per_piece;
  if (end > blocks_of(chunk)) end = blocks_of(chunk);
  const int64_t from_byte = in_chunk % parts_per_block * kPieceBytes;
  int64_t bytes = job.block_bytes - from_byte;
  if (parts_per_block > 1 && bytes > kPieceBytes) bytes = kPieceBytes;
  const char *from = staging + chunk % stages * chunk_bytes;
  for (int64_t i = begin; i < end; i++) {
    char *to = reinterpret_cast<char *>(job.dst[chunk * blocks_per_chunk + i]) + from_byte;
    if (avx2)
      stream_avx2(to, from + i * job.block_bytes + from_byte, bytes);
    else
      stream_sse2(to, from + i * job.block_bytes + from_byte, bytes);
  }
  _mm_sfence();  // streaming stores are weakly ordered: visible before the piece is done
  scattered[size_t(chunk % stages)].fetch_add(1, std::memory_order_release);
}

void Saver::scatter() {
  for (;;) {
    const int64_t piece = next.fetch_add(1, std::memory_order_relaxed);
    if (piece >= pieces) return;
    int64_t arrived;
    Patience patience;
    while ((arrived = ready.load(std::memory_order_acquire)) <= piece / pieces_per_chunk) {
      if (arrived < 0) return;
      patience.wait();
    }
    scatter_piece(piece);
  }
}

// The driver scatters only a piece that has arrived, since no other thread would start the next
// copy.
bool Saver::scatter_arrived() {
  int64_t piece = next.load(std::memory_order_relaxed);
  if (piece >= pieces || piece / pieces_per_chunk >= ready.load(std::memory_order_relaxed))
    return false;
  if (!next.compare_exchange_strong(piece, piece + 1, std::memory_order_relaxed)) return false;
  scatter_piece(piece);
  return true;
}

int Saver::drive() {
  SS_CUDA(cudaSetDevice(device));
  if (job.after != nullptr)
    SS_CUDA(cudaStreamWaitEvent(stream, static_cast<cudaEvent_t>(job.after), 0));
  const char *src = static_cast<const char *>(job.src);
  int64_t issued = 0, arrived = 0;
  Patience patience;
  while (arrived < chunks) {
    // A stage is free once all pieces of the chunk that used it before are scattered; every chunk
    // counts pieces_per_chunk pieces.
    while (issued < chunks && issued - arrived < stages &&
           scattered[issued % stages].load(std::memory_order_acquire) >=
               issued / stages * pieces_per_chunk) {
      SS_CUDA(cudaMemcpyAsync(staging + issued % stages * chunk_bytes,
                              src + issued * blocks_per_chunk * job.block_bytes,
                              size_t(blocks_of(issued) * job.block_bytes), cudaMemcpyDeviceToHost,
                              stream));
      SS_CUDA(cudaEventRecord(copied[size_t(issued % stages)], stream));
      issued++;
    }
    if (arrived < issued) {
      const cudaError_t result = cudaEventQuery(copied[size_t(arrived % stages)]);
      if (result == cudaSuccess) {
        ready.store(++arrived, std::memory_order_release);
        patience = {};
        continue;
      }
      if (result != cudaErrorNotReady) return check(result, "cudaEventQuery");
    }
    if (!scatter_arrived()) patience.wait();
  }
  return SS_OK;
}

void Saver::run() {
  uint64_t done = 0;
  for (;;) {
    // Saves come in bursts, one a layer: spin for a while before sleeping, since a wake-up costs
    // tens of microseconds.
    Patience patience;
    while (patience.spins < 2000 && epoch_seen.load(std::memory_order_acquire) == done)
      patience.wait();
    bool drives = false;
    {
      std::unique_lock<std::mutex> hold(lock);
      wake.wait(hold, [&] { return stop || epoch != done; });
      if (stop) return;
      done = epoch;
      if (!running) continue;  // the others have ended it
      inside++;
      drives = !driven;
      driven = true;
    }
    if (drives) {
      const int result = drive();
      if (result != SS_OK) {
        ready.store(-1, std::memory_order_release);
        std::lock_guard<std::mutex> hold(lock);
        code = result;
        snprintf(text, sizeof text, "%s", ss_last_error());
      }
    }
    scatter();
    // The driver is inside until every piece is handed out or a copy has failed, and others until
    // theirs are scattered.
    std::lock_guard<std::mutex> hold(lock);
    if (--inside == 0) {
      running = false;
      idle.notify_all();
    }
  }
}

static int make_saver(Saver *saver, int threads) {
  SS_CUDA(cudaGetDevice(&saver->device));
  SS_CUDA(cudaHostAlloc(reinterpret_cast<void **>(&saver->staging),
                        size_t(saver->stages * saver->chunk_bytes), cudaHostAllocPortable));
  SS_TRY(take_stream(&saver->stream, false));
  for (int i = 0; i < saver->stages; i++) {
    cudaEvent_t event = nullptr;
    SS_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    saver->copied.push_back(event);
  }
  saver->scattered.reset(new std::atomic<int64_t>[size_t(saver->stages)]);
  for (int i = 0; i < threads; i++) saver->threads.emplace_back([saver] { saver->run(); });
  return SS_OK;
}

static void end_saver(Saver *saver) {
  {
    std::lock_guard<std::mutex> hold(saver->lock);
    saver->stop = true;
  }
  saver->epoch_seen.fetch_add(1);  // ends the spinning
  saver->wake.notify_all();
  for (std::thread &thread : saver->threads) thread.join();
  for (cudaEvent_t event : saver->copied) cudaEventDestroy(event);
  if (saver->stream != nullptr) drop_stream(saver->stream);
  if (saver->staging != nullptr) cudaFreeHost(saver->staging);
  delete saver;
}

}  // namespace ss

extern "C" int ss_saver_create(ss_saver *out, int32_t threads, int64_t chunk_bytes,
                               int32_t stages) {
  SS_NEED(out != nullptr);
  SS_NEED(threads >= 1 && threads <= 1024);
  SS_NEED(chunk_bytes >= 4096 && chunk_bytes % 64 == 0);
  SS_NEED(stages >= 1 && stages <= 64);
  ss::Saver *saver = new (std::nothrow) ss::Saver;
  if (saver == nullptr) return ss::fail(SS_ERR_MEMORY, "ss_saver_create: out of memory");
  saver->stages = stages;
  saver->chunk_bytes = chunk_bytes;
  saver->avx2 = __builtin_cpu_supports("avx2");
  const int code = ss::make_saver(saver, threads);
  if (code != SS_OK) {
    ss::end_saver(saver);
    return code;
  }
  *out = saver;
  return SS_OK;
}

extern "C" int ss_saver_destroy(ss_saver handle) {
  if (handle == nullptr) return SS_OK;
  SS_TRY(ss_save_wait(handle));
  ss::end_saver(static_cast<ss::Saver *>(handle));
  return SS_OK;
}

extern "C" int ss_save_start(const ss_save_args *args) {
  SS_NEED(args != nullptr && args->saver != nullptr);
  ss::Saver *saver = static_cast<ss::Saver *>(args->saver);
  SS_NEED(args->count >= 0);
  SS_NEED(args->block_bytes > 0 && args->block_bytes % 64 == 0 &&
          args->block_bytes <= saver->chunk_bytes);
  if (args->count == 0) return SS_OK;
  SS_NEED(args->src != nullptr && args->dst != nullptr);
  for (int64_t i = 0; i < args->count; i++) SS_NEED(args->dst[i] != 0 && args->dst[i] % 32 == 0);

  std::lock_guard<std::mutex> hold(saver->lock);
  if (saver->running) return ss::fail(SS_ERR_ARGUMENT, "ss_save_start: a save is still running");
  saver->job = *args;
  saver->blocks_per_chunk = saver->chunk_bytes / args->block_bytes;
  saver->chunks = ss::ceil_div64(args->count, saver->blocks_per_chunk);
  saver->blocks_per_piece =
      args->block_bytes >= ss::kPieceBytes ? 1 : ss::kPieceBytes / args->block_bytes;
  saver->parts_per_block = ss::ceil_div64(args->block_bytes, ss::kPieceBytes);
  saver->pieces_per_chunk =
      ss::ceil_div64(saver->blocks_per_chunk, saver->blocks_per_piece) * saver->parts_per_block;
  // those past the end of the last chunk are empty
  saver->pieces = saver->chunks * saver->pieces_per_chunk;
  saver->ready.store(0);
  saver->next.store(0);
  for (int i = 0; i < saver->stages; i++) saver->scattered[size_t(i)].store(0);
  saver->code = SS_OK;
  saver->running = true;
  saver->driven = false;
  saver->epoch++;
  saver->epoch_seen.store(saver->epoch, std::memory_order_release);
  saver->wake.notify_all();
  return SS_OK;
}

extern "C" int ss_save_wait(ss_saver handle) {
  SS_NEED(handle != nullptr);
  ss::Saver *saver = static_cast<ss::Saver *>(handle);
  std::unique_lock<std::mutex> hold(saver->lock);
  saver->idle.wait(hold, [&] { return !saver->running; });
  if (saver->code != SS_OK) {
    const int code = saver->code;
    saver->code = SS_OK;
    return ss::fail(code, "FlashD2H: %s", saver->text);
  }
  return SS_OK;
}

extern "C" int ss_flash_d2h(const ss_save_args *args, ss_stream) {
  SS_TRY(ss_save_start(args));
  return ss_save_wait(args->saver);
}
