// Plain C interface of libsparseserve: KV transfers, sparse attention and selection for one GPU.
//
// Every call returns SS_OK or an error code and never ends the process; ss_last_error() has the
// text of the last failure of the calling thread. Calls of one GPU come from one thread. A stream
// or event is an opaque handle; a null stream is the library's own default stream. Every operation
// has the arguments (const args *, stream), so that ss_bench can time any of them. Operations only
// enqueue, except where "blocks" is noted.
//
// Shapes: B requests, Hq query heads, Hk KV heads, G = Hq / Hk (1 to 8), D = 64 or 128 values a
// head, T tokens a KV block (a multiple of 16). A KV block holds one KV head of one layer, fp16: K
// [T][D], then V [T][D]. Slot s of a pool is at pool + s * 4 T D bytes. A "unit" is one (request,
// KV head): unit = request * Hk + head.
#ifndef SPARSESERVE_H
#define SPARSESERVE_H

#include <stdint.h>

#define SS_VERSION 11

#if defined(__GNUC__)
#define SS_API __attribute__((visibility("default")))
#else
#define SS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SS_OK = 0,
  SS_ERR_ARGUMENT = 1,     // a size, pointer or combination that is not supported
  SS_ERR_CUDA = 2,         // the CUDA runtime or a kernel failed
  SS_ERR_NO_DRIVER = 3,    // no NVIDIA driver, or one older than the toolkit that built the library
  SS_ERR_NO_DEVICE = 4,    // a driver but no such GPU
  SS_ERR_UNSUPPORTED = 5,  // not in the toolkit that built the library, or not on this GPU
  SS_ERR_LIBRARY = 6,      // cuBLAS is not found at run time
  SS_ERR_MEMORY = 7,       // out of host or device memory
};

typedef void *ss_stream;
typedef void *ss_event;

SS_API int ss_version(void);
SS_API const char *ss_last_error(void);

// ---- device -------------------------------------------------------------------------------------

typedef struct {
  char name[128];
  int64_t memory_bytes;       // HBM that the driver shows
  int64_t memory_busy_bytes;  // in use now, by anyone
  int64_t l2_bytes;
  int32_t sm_count;
  int32_t capability;       // 10 * major + minor
  int32_t driver_version;   // CUDA version of the driver, 1000 * major + 10 * minor
  int32_t toolkit_version;  // of the toolkit that built the library, likewise
  int32_t copy_engines;
  int32_t shared_bytes;  // largest shared memory of a CTA
} ss_device_info;

// Selects the GPU for the calling thread; fails with NO_DRIVER or NO_DEVICE.
SS_API int ss_init(int32_t device);
SS_API int ss_device(ss_device_info *out);

// ---- memory, streams, events --------------------------------------------------------------------

enum {
  SS_HOST_PAGES = 0,       // pinned by the driver
  SS_HOST_HUGE_PAGES = 1,  // pinned 2 MiB pages where the kernel gives them: fewer TLB misses
};

SS_API int ss_device_alloc(void **out, int64_t bytes);
SS_API int ss_device_free(void *p);
// Pinned; the GPU reads it at the same address.
SS_API int ss_host_alloc(void **out, int64_t bytes, int32_t kind);
SS_API int ss_host_free(void *p);

// Streams are kept: to destroy one waits for its work, and a later create may return it again.
SS_API int ss_stream_create(ss_stream *out, int32_t high_priority);
SS_API int ss_stream_destroy(ss_stream stream);
SS_API int ss_stream_sync(ss_stream stream);  // blocks
SS_API int ss_stream_wait(ss_stream stream, ss_event event);
// The time of a timed event is written to host memory: a record takes 3 us where nothing moves, and
// 10 more while a kernel loads over the link (H100). The others' take nothing.
SS_API int ss_event_create(ss_event *out, int32_t timed);
SS_API int ss_event_destroy(ss_event event);
SS_API int ss_event_record(ss_event event, ss_stream stream);
SS_API int ss_event_sync(ss_event event);  // blocks
SS_API int ss_event_ms(ss_event from, ss_event to, float *ms);
SS_API int ss_device_sync(void);  // blocks

typedef struct {
  void *dst;
  const void *src;
  int64_t bytes;
} ss_memcpy_args;
SS_API int ss_memcpy(const ss_memcpy_args *args, ss_stream stream);  // any direction

typedef struct {
  void *dst;
  int64_t bytes;
  int32_t value;  // of each byte
} ss_memset_args;
SS_API int ss_memset(const ss_memset_args *args, ss_stream stream);

typedef struct {
  void *dst;      // fp16 [count], device
  int64_t count;  // even
  uint64_t seed;
  float scale;  // values are uniform in (-scale, scale)
} ss_fill_args;
SS_API int ss_fill(const ss_fill_args *args, ss_stream stream);

SS_API int ss_empty(const void *args, ss_stream stream);  // an empty kernel, for launch costs

// ---- KV transfers -------------------------------------------------------------------------------

// Copies block i from src[i] to dst[i]. For the kernels both arrays are readable by the GPU (device
// or pinned); for the memcpy forms they are host arrays. Addresses are multiples of 16, block_bytes
// a multiple of 16.
typedef struct {
  const uint64_t *src;
  const uint64_t *dst;
  int64_t count;
  int64_t block_bytes;
  const int32_t *owner;  // kernel forms: block i is skipped when skip[owner[i]] != 0; or NULL
  const int32_t *skip;
  int32_t ctas;  // CTAs of the kernel forms; 0: 8, of 256 threads, which fill a PCIe 5 link; fewer
                 // have up to 1024 threads each
  const int64_t *counted;  // kernel forms: device, number of blocks, at most `count`; or NULL
} ss_blocks_args;

// One kernel that reads, one that writes host memory (UVA); one memcpy a block.
SS_API int ss_flash_h2d(const ss_blocks_args *args, ss_stream stream);
SS_API int ss_gpu_scatter(const ss_blocks_args *args, ss_stream stream);
SS_API int ss_memcpy_blocks(const ss_blocks_args *args, ss_stream stream);

// Residency of one layer's listed blocks, looked up on the GPU; units are [B][Hk]. A block that is
// in HBM gets its slot from its request's table. The others get free slots in the order of units
// and entries, and go to src and dst to be loaded: in that order, or with `before` those of each
// round of progressive attention from its own place on, in any order. Only `misses` shows that the
// caller counts other misses than there are: those beyond `frees` get slot 0 and are not loaded,
// those beyond a round's places are not loaded, and places that are left copy a free slot to
// itself.
typedef struct {
  const uint64_t *table;     // [B] addresses of int32 [groups][cap]: slot + 1, or 0; updated
  const int32_t *cap;        // [B]
  const uint64_t *page;      // [B][page_stride] a full block's page: group g is at block_bytes * g
  const int32_t *list;       // [B][Hk][stride] logical blocks
  const int32_t *named;      // [B][Hk] of them that must be in HBM
  const int32_t *first;      // [B][Hk] of them that round 1 needs; or NULL. Only with `before`
  int32_t *slot;             // out [B][Hk][stride]
  const int32_t *free_slot;  // [frees] for the misses
  const uint64_t *evicted;   // [evictions] addresses of other blocks' entries that lose their slots
  uint64_t *src, *dst;       // out: addresses of the loads
  const int64_t *before;     // [rounds] the first load of each; NULL: not progressive
  int64_t *loads;            // out, device: misses with a free slot, for ss_blocks_args.counted
  int64_t *misses;           // out, pinned: misses; or NULL
  void *state;               // ss_lookup_state bytes, zeroed once
  uint64_t pool;             // address of slot 0
  int64_t block_bytes;
  int32_t batch, heads, stride, page_stride;
  int32_t group;  // of the layer's first KV head
  int32_t frees, evictions, rounds, micro;
} ss_lookup_args;

SS_API int ss_lookup_state(const ss_lookup_args *args, int64_t *bytes);
SS_API int ss_lookup(const ss_lookup_args *args, ss_stream stream);

// Changes to tables besides those of ss_lookup: first entries that lose their slots, then entries
// that get one.
typedef struct {
  const uint64_t *evicted;  // [evictions] addresses of entries
  const uint64_t *entry;    // [entries] addresses
  const int32_t *slot;      // [entries]
  int32_t evictions, entries;
} ss_table_args;
SS_API int ss_table(const ss_table_args *args, ss_stream stream);

// Hot buffers of token-level selection (HiSparse), one layer: the selected tokens of each request
// get slots of its buffer, those without one by evicting the least recently used, and their rows
// are read from host memory. A row is all that a layer keeps of a token: one KV latent for all
// heads. The newest token's row comes from `fresh`, is saved to the host, and takes part whether
// it is selected or not. After a call the buffer's order of use is: what was not selected, as
// before; what was hit, as before; what was loaded, as listed, the newest last where it is not.
// A request whose context is at most `slots` has token t in slot t, and keeps its state.
typedef struct {
  const int32_t *list;     // [B][stride] selected tokens, below the context, none twice
  const int32_t *count;    // [B] of them
  const int32_t *context;  // [B] tokens, the newest included
  const uint64_t *page;    // [B][page_stride] pinned pages of page_tokens tokens: token t is in
                           // page t / page_tokens, at offset + t % page_tokens * row_bytes
  const uint64_t *buffer;  // [B] addresses of [slots][row_bytes], device
  const uint64_t *state;   // [B] addresses of int32 [2][slots], device: the token of each slot, -1
                           // for none; the slots, least recently used first
  const void *fresh;       // [B][row_bytes] device
  int32_t *slot;           // out [B][stride]
  int32_t *misses;         // out [B] rows read from the host
  int64_t offset;          // of the layer in a page; a multiple of 16
  int32_t batch, stride;   // stride at most SS_TOPK_MAX
  int32_t slots;           // more than stride, at most SS_SLOTS_MAX
  int32_t row_bytes;       // a multiple of 16
  int32_t page_stride, page_tokens;
} ss_swap_in_args;
#define SS_SLOTS_MAX 16384
SS_API int ss_swap_in(const ss_swap_in_args *args, ss_stream stream);

// FlashD2H: the copy engine brings a contiguous device tensor to pinned staging in chunks, and CPU
// threads scatter each chunk to its blocks while the next is on the link. Destination blocks are
// ordinary or pinned host memory, addresses multiples of 32.
typedef void *ss_saver;
typedef struct {
  ss_saver saver;
  const void *src;      // device, [count][block_bytes]
  const uint64_t *dst;  // host array of host addresses, kept by the caller until the save is done
  int64_t count;
  int64_t block_bytes;  // a multiple of 64, at most the saver's chunk
  ss_event after;       // the copy starts after this event; null: at once
} ss_save_args;

SS_API int ss_saver_create(ss_saver *out, int32_t threads, int64_t chunk_bytes, int32_t stages);
SS_API int ss_saver_destroy(ss_saver saver);
SS_API int ss_save_start(const ss_save_args *args);  // returns at once; one save at a time
SS_API int ss_save_wait(ss_saver saver);             // blocks until every block is written
SS_API int ss_flash_d2h(const ss_save_args *args, ss_stream unused);  // start and wait: blocks

// ---- attention ----------------------------------------------------------------------------------

// Decode: one query token a request attends to blocks of its context.
//   out[b][h] = sum_t softmax_t(scale q[b][h] . K_t) V_t, t: tokens of the blocks of (b, h / G)
// Logical block i of a unit is in slot table[unit][i]; its last block may be partly filled
// (context). With list == NULL all blocks count (paged dense decode); else only the count[unit]
// logical blocks list[unit][0..] do (block-sparse decode). No blocks: out = 0, lse = -inf.
typedef struct {
  const void *q;           // fp16 [B][Hq][D]
  const void *pool;        // slots
  const int32_t *table;    // [B][Hk][table_stride]
  const int32_t *context;  // [B] tokens
  const int32_t *list;     // [B][Hk][list_stride] or NULL
  const int32_t *count;    // [B][Hk] or NULL
  void *out;               // fp16 [B][Hq][D]
  float *lse;              // [B][Hq], natural log of the sum of exponentials, or NULL
  void *workspace;         // ss_decode_workspace bytes, zeroed once and where G or D changes
  int32_t batch, heads_q, heads_kv, head_dim, block_tokens;
  int32_t table_stride, list_stride;
  int32_t max_blocks;  // upper bound of the blocks of a unit, sizes the grid
  int32_t splits;      // CTAs for each unit, on average in a dense batch; 0: chosen
  float scale;
  int32_t pages;        // 1: table is [B][table_stride]: head h is in slot table[b][i] * Hk + h
  const int32_t *slot;  // [B][Hk][list_stride] the list's slots, in place of the table; or NULL
} ss_decode_args;

SS_API int ss_decode_workspace(const ss_decode_args *args, int64_t *bytes);
SS_API int ss_decode(const ss_decode_args *args, ss_stream stream);

// PSA decode (Algorithm 1): blocks in order of criticality, `micro` at a time. After each
// microbatch the verifying step compares AS_acc / (AS_acc + AS_min N_left) with epsilon for every
// query head of the unit; a unit whose query heads all exceed it is done. One call runs
// microbatches [first, first + steps); state carries the running softmax between calls (first == 0
// starts afresh).
typedef struct {
  const void *q;
  const void *pool;
  const int32_t *table;
  const int32_t *context;
  const int32_t *order;  // [B][Hk][order_stride] logical blocks, most critical first
  const int32_t *count;  // [B][Hk] blocks in order
  void *out;             // fp16 [B][Hq][D], the answer so far
  int32_t *used;         // [B][Hk] blocks attended to
  int32_t *done;         // [B][Hk] 1 once the unit has stopped
  void *state;           // ss_psa_state bytes, device
  int32_t *flag;         // pinned: becomes 1 once every unit is done; NULL if not wanted
  int32_t batch, heads_q, heads_kv, head_dim, block_tokens;
  int32_t table_stride, order_stride;
  int32_t micro;  // blocks a microbatch
  int32_t first, steps;
  float scale;
  float epsilon;
  const int32_t *slot;  // [B][Hk][order_stride] the order's slots, in place of the table; or NULL
} ss_psa_args;

SS_API int ss_psa_state(const ss_psa_args *args, int64_t *bytes);
SS_API int ss_psa(const ss_psa_args *args, ss_stream stream);

// Causal prefill attention of one request: query i (of q_tokens) sees keys 0 .. prefix + i of the
// prefix + q_tokens keys. fp16; element (token, head, d) of a tensor is at token * token_stride +
// head * head_stride + d, strides multiples of 8. With table != NULL keys and values are in KV
// blocks instead: token t of KV head h is in slot table[h * table_stride + t / T], at offset t % T,
// T at most 256; k and v and their strides are not read then. The new tokens' own keys and values
// must be in their blocks too (ss_rope puts them there).
typedef struct {
  const void *q, *k, *v;
  void *out;
  int64_t q_token_stride, q_head_stride;
  int64_t k_token_stride, k_head_stride;
  int64_t v_token_stride, v_head_stride;
  int64_t out_token_stride, out_head_stride;
  int32_t q_tokens, prefix, heads_q, heads_kv, head_dim;
  float scale;
  const void *pool;      // slots, or NULL with table
  const int32_t *table;  // [Hk][table_stride] or NULL
  int32_t table_stride, block_tokens;
} ss_prefill_args;
SS_API int ss_prefill(const ss_prefill_args *args, ss_stream stream);

// ---- MInference's sparse prefill ----------------------------------------------------------------

// ss_prefill's attention where each query sees some of the keys that are not newer; D = 128, no
// table. Queries are in tiles of 128, each in two halves of 64; R = ceil(q_tokens / 128) tiles.
//   lists given: a half sees its blocks of 64 keys from any start on, and single keys (columns)
//   else:        keys below `sink` and the `window` newest ones (A-shape); window 0: all (dense)
// A tile's list has first the counts[0] starts of blocks that both halves see, then counts[1] of
// only the first half, then counts[2] of only the second. A key that both a block and a column
// have counts twice. Counts are at multiples of 16 bytes. On sm_90, with 16-byte aligned tensors,
// the kernel of wgmma and the bulk copy engine runs where the library was built with it
// (ss_mi_kernel reports it), else one that sm_80 has.
typedef struct {
  ss_prefill_args prefill;
  int32_t sink, window;
  int32_t block_stride, column_stride;
  const int32_t *blocks;   // [Hq][R][block_stride] or NULL
  const int32_t *columns;  // [Hq][R][column_stride]: a key; bit 30 + h: half h does not see it
  const int32_t *counts;   // [Hq][R][4]: blocks of both, of the first, of the second half; columns
} ss_mi_attend_args;
SS_API int ss_mi_attend(const ss_mi_attend_args *args, ss_stream stream);
// 1: ss_mi_attend runs on wgmma
SS_API int ss_mi_kernel(const ss_mi_attend_args *args, int32_t *hopper);

// Keys and values of one request's KV blocks as tensors, for kernels without a table: token t of KV
// head h goes to row t of k, v + h * head_stride.
typedef struct {
  const void *pool;
  const int32_t *table;  // [heads][table_stride] slots
  void *k, *v;           // fp16 [heads][tokens][128]; D = 128
  int64_t head_stride;   // a multiple of 8, tokens * 128 at least
  int32_t table_stride, tokens, heads, block_tokens;
} ss_mi_gather_args;
SS_API int ss_mi_gather(const ss_mi_gather_args *args, ss_stream stream);

// The mean of each 64 tokens of a head, the last of fewer: what stands for a block in the selection
// of blocks.
typedef struct {
  const void *x;  // fp16, (token, head, d) at token * token_stride + head * head_stride + d
  void *out;      // fp16 [heads][ceil(tokens / 64)][128]; D = 128
  int64_t token_stride, head_stride;
  int32_t tokens, heads;
} ss_mi_pool_args;
SS_API int ss_mi_pool(const ss_mi_pool_args *args, ss_stream stream);

// Block-sparse: of the blocks of 64 keys from its first on that a row of 64 queries may see, the
// `top` with the largest products of pooled keys and pooled queries, as ss_mi_attend takes them
// (ascending, no columns). Equal products: the lower block.
typedef struct {
  const void *q;  // fp16 [Hq][ceil(q_tokens / 64)][128]
  const void *k;  // fp16 [Hk][ceil((prefix + q_tokens) / 64)][128]
  int32_t *blocks, *counts;
  float *scores;        // scratch: rows of all blocks, rounded up to 64; at least 64 or a head's
  int64_t score_count;
  int32_t q_tokens, prefix, heads_q, heads_kv;
  int32_t block_stride;  // at least 2 top
  int32_t top;           // at most SS_TOPK_MAX
} ss_mi_blocks_args;
SS_API int ss_mi_blocks(const ss_mi_blocks_args *args, ss_stream stream);

// Vertical-slash, first step: A is the softmax of the last queries (64, or all), over the keys that
// each may see. vertical[j] is the sum of key j's weights, slash[d] that of the keys at distance d
// from their query.
typedef struct {
  ss_prefill_args prefill;  // v and out are not read; no table
  float *vertical, *slash;  // [Hq][stride], prefix + q_tokens of them
  void *workspace;          // ss_mi_estimate_workspace bytes
  int64_t stride;
} ss_mi_estimate_args;
SS_API int ss_mi_estimate_workspace(const ss_mi_estimate_args *args, int64_t *bytes);
SS_API int ss_mi_estimate(const ss_mi_estimate_args *args, ss_stream stream);

// Second step: the k largest of a row's n scores, their indices ascending; equal scores: lower
// index first. The lowest `first` indices are always chosen and count towards k. -inf is a score,
// NaN is not.
typedef struct {
  const float *scores;  // [rows][score_stride]
  int32_t *list;        // [rows][list_stride]
  void *workspace;      // ss_mi_topk_workspace bytes
  int64_t score_stride, list_stride;
  int32_t rows, n, k, first;
} ss_mi_topk_args;
SS_API int ss_mi_topk_workspace(const ss_mi_topk_args *args, int64_t *bytes);
SS_API int ss_mi_topk(const ss_mi_topk_args *args, ss_stream stream);

// Third step: lines to lists that ss_mi_attend takes. Of a row of 64 queries, the last at position
// e - 1, slash line d has the 64 keys below max(e - d, 64). Lines from the farthest on begin a
// range of blocks, or extend the one before by a block where they end at most 64 past it. Vertical
// lines below e that no block of the row covers are its columns.
typedef struct {
  const int32_t *vertical, *slash;     // [Hq][stride], ascending
  int32_t *blocks, *columns, *counts;
  int64_t vertical_stride, slash_stride;
  int32_t vertical_count, slash_count;  // slash_count at least 1
  int32_t heads_q, q_tokens, prefix;
  int32_t block_stride;   // at least twice min(slash_count, (prefix + q_tokens) / 64 + 2)
  int32_t column_stride;  // at least vertical_count
} ss_mi_lines_args;
SS_API int ss_mi_lines(const ss_mi_lines_args *args, ss_stream stream);

// ---- metadata and selection ---------------------------------------------------------------------

// Cuboid-mean digest of full blocks: per dimension c = (max + min) / 2, r = mean |k - c|; hi = c +
// r, lo = c - r.
typedef struct {
  const void *pool;
  const int32_t *slot;  // [count]
  const int64_t *dst;   // [count] index of the digest in meta
  void *meta;           // fp16 [.][2][D]: hi, lo
  int64_t count;
  int32_t head_dim, block_tokens;
} ss_digest_args;
SS_API int ss_digest(const ss_digest_args *args, ss_stream stream);

// Criticality of block i of a unit: mean over the group's query heads of sum_d max(q_d hi_d, q_d
// lo_d).
typedef struct {
  const void *q;         // fp16 [B][Hq][D]
  const void *meta;      // fp16 [.][2][D]
  const int64_t *first;  // [B][Hk] index of the unit's first digest; its others follow
  const int32_t *count;  // [B][Hk] digests of the unit
  float *scores;         // [B][Hk][score_stride]
  int32_t batch, heads_q, heads_kv, head_dim;
  int32_t score_stride;
  int32_t max_blocks;  // upper bound of count
} ss_scores_args;
SS_API int ss_scores(const ss_scores_args *args, ss_stream stream);

// The k most critical of a unit's `blocks` blocks, most critical first; equal scores: lower index
// first. The first `sink` and last `window` blocks are always chosen, before all others, and count
// towards k; their scores are not read. -inf is a score, NaN is not.
typedef struct {
  const float *scores;    // [units][score_stride]
  const int32_t *blocks;  // [units]
  int32_t *list;          // [units][list_stride]
  int32_t *count;         // [units] = min(k, blocks)
  int32_t units, score_stride, list_stride;
  int32_t k;  // at most SS_TOPK_MAX
  int32_t sink, window;
} ss_topk_args;
#define SS_TOPK_MAX 4096
SS_API int ss_topk(const ss_topk_args *args, ss_stream stream);

// ss_scores and ss_topk in one launch. A unit has scores.count digests and topk.blocks blocks, at
// most scores.score_stride of each.
typedef struct {
  ss_scores_args scores;
  ss_topk_args topk;  // topk.scores is not used
  int32_t *arrived;   // [units], zeroed once after allocation, one per concurrent call
} ss_select_args;
SS_API int ss_select(const ss_select_args *args, ss_stream stream);

// ---- linears ------------------------------------------------------------------------------------

// y = x w^T with cuBLAS, fp16 in and out, fp32 accumulation.
typedef struct {
  const void *x;  // fp16 [tokens][in]
  const void *w;  // fp16 [out][in]
  void *y;        // fp16 [tokens][out]
  int32_t tokens, in, out;
} ss_linear_args;
SS_API int ss_linear_open(const char *path);  // cuBLAS library; NULL or "" searches the usual names
SS_API int ss_linear(const ss_linear_args *args, ss_stream stream);

// ---- the rest of a layer ------------------------------------------------------------------------

// What a Llama forward pass needs besides linears and attention. Arithmetic is fp32; where
// HuggingFace's LlamaForCausalLM in fp16 rounds between steps, so do these: r(x) is x rounded to
// fp16. Tensors are dense, fp16 ones at multiples of 16 bytes, hidden and ffn multiples of 8.

// out[i] = table[token[i]]
typedef struct {
  const void *table;     // fp16 [vocab][hidden]
  const int32_t *token;  // [tokens], each below vocab
  void *out;             // fp16 [tokens][hidden]
  int32_t tokens, hidden;
} ss_embed_args;
SS_API int ss_embed(const ss_embed_args *args, ss_stream stream);

// norm(x) = r(x / sqrt(mean_d x_d^2 + eps)) * weight
//   residual given:  residual[i] = r(residual[i] + x[i]),  out[i] = r(norm(residual[i]))
//   else:            out[i] = r(norm(x[row[i]])), row[i] = i where row is NULL
// out may be x unless row is given.
typedef struct {
  const void *x;       // fp16 [rows][hidden]; with row, as many rows as row names
  void *residual;      // fp16 [rows][hidden] or NULL
  const void *weight;  // fp16 [hidden]
  void *out;           // fp16 [rows][hidden]
  const int32_t *row;  // [rows] or NULL; NULL where residual is given
  int32_t rows;
  int32_t hidden;  // at most 32768
  float eps;
} ss_rmsnorm_args;
SS_API int ss_rmsnorm(const ss_rmsnorm_args *args, ss_stream stream);

// Rotates q and k of each token in place. With p the token's position and x, y dimensions d and d +
// D / 2 of a head, d < D / 2:
//   c = r(cos(p inv_freq_d))    x' = r(r(x c) - r(y s))
//   s = r(sin(p inv_freq_d))    y' = r(r(y c) + r(x s))
// q_out gets the rotated q packed, as ss_decode reads it. With a pool, the rotated k and the v of
// token i of KV head h also go to offset p % T of slot table[row[i] * row_stride + h * head_stride
// + p / T - first[row[i]]].
typedef struct {
  void *qkv;                // fp16 [tokens][Hq + 2 Hk][D]: q heads, k heads, v heads
  const int32_t *position;  // [tokens]
  const float *inv_freq;    // [D / 2]
  void *q_out;              // fp16 [tokens][Hq][D] or NULL
  void *pool;               // slots, or NULL: not written
  const int32_t *table;     // the slots of every (row, KV head); strides in entries
  const int32_t *row;       // [tokens] the token's row of the table, or NULL: all 0
  const int32_t *first;     // [rows] logical block of a row's first entry, or NULL: all 0
  int64_t row_stride, head_stride;
  int32_t tokens, heads_q, heads_kv, head_dim, block_tokens;
  int32_t pages;  // 1: KV head h has slot entry * Hk + h; head_stride is not read
} ss_rope_args;
SS_API int ss_rope(const ss_rope_args *args, ss_stream stream);

// Only the stores to KV blocks, of k rotated before: for slots that are known no sooner than q is
// needed. inv_freq and q_out are not read.
SS_API int ss_kv_write(const ss_rope_args *args, ss_stream stream);

// out = r(r(gate / (1 + exp(-gate))) * up)
typedef struct {
  const void *x;  // fp16 [tokens][2 ffn]: gate, then up
  void *out;      // fp16 [tokens][ffn]
  int32_t tokens, ffn;
} ss_silu_mul_args;
SS_API int ss_silu_mul(const ss_silu_mul_args *args, ss_stream stream);

// The lowest index of each row's largest value. NaN never wins; a row without a number above -inf
// gives 0.
typedef struct {
  const void *logits;  // fp16 [rows][stride], at a multiple of 16 bytes; stride may be any
  int32_t *out;        // [rows]
  int32_t rows;
  int32_t vocab;  // values of a row that count
  int32_t stride;
} ss_argmax_args;
SS_API int ss_argmax(const ss_argmax_args *args, ss_stream stream);

// ---- latent attention ---------------------------------------------------------------------------

// Latent attention (MLA), absorbed, and the indexer of token-level sparse attention (DSA). A layer
// keeps a row of rank + rope values of each token: the normed latent, which is key and value of all
// heads, and the rotated part of the key. Tensors are fp16, sums fp32; r(x) is x rounded to fp16.
// Simple kernels, not tuned.

// y[t][h][o] = r(sum_i x[t][h][i] w[h][o][i]): a linear of each head
typedef struct {
  const void *x;  // head h of token t is at value t * x_token + h * x_head
  const void *w;  // [heads][out][in]
  void *y;        // [tokens][heads][out]
  int64_t x_token, x_head;
  int32_t tokens, heads, in, out;  // in at most 4096
} ss_head_linear_args;
SS_API int ss_head_linear(const ss_head_linear_args *args, ss_stream stream);

// Rotates the first dim values of each head in place, as ss_rope does.
typedef struct {
  void *x;  // head h of token t is at value t * token_stride + h * head_stride
  const int32_t *position;  // [tokens]
  const float *inv_freq;    // [dim / 2]
  int64_t token_stride, head_stride;
  int32_t tokens, heads, dim;
} ss_rotate_args;
SS_API int ss_rotate(const ss_rotate_args *args, ss_stream stream);

// What a layer keeps of each token, to an address a token:
//   row = norm(latent[0 .. rank)) * weight, then latent[rank .. rank + rope) rotated (RMS norm)
//   key = r(r((key - mean) / sqrt(variance + eps)) * weight + bias), its first rope values rotated
typedef struct {
  const void *latent;  // [tokens][rank + rope]
  const void *key;     // [tokens][key_dim]
  const void *norm;    // [rank]
  const void *key_norm, *key_bias;  // [key_dim]
  const int32_t *position;          // [tokens]
  const float *inv_freq;            // [rope / 2]
  const uint64_t *row_to, *key_to;  // [tokens]
  int32_t tokens, rank, rope, key_dim;  // rank and key_dim at most 1024
  float eps;
} ss_latent_write_args;
SS_API int ss_latent_write(const ss_latent_write_args *args, ss_stream stream);

// scores[i][t] = scale sum_h weight[i][h] max(0, q[i][h] . key[t])  for t < context[i]
typedef struct {
  const void *q;       // [rows][heads][dim]
  const void *weight;  // [rows][heads]
  const uint64_t *key;     // [rows] addresses of [context][dim]
  const int32_t *context;  // [rows]
  float *scores;           // [rows][stride]; others than those above are not written
  int32_t rows, heads, dim, stride;  // heads * dim at most 16384
  float scale;
} ss_index_scores_args;
SS_API int ss_index_scores(const ss_index_scores_args *args, ss_stream stream);

// Attention of each row's heads to the listed rows of kv: with s_j = scale (q . latent_j +
// q_rope . rotated_j),  out = r(sum_j softmax(s)_j latent_j); no rows give 0.
typedef struct {
  const void *q;       // [rows][heads][rank]
  const void *q_rope;  // head h of row i is at value i * rope_row + h * rope_head
  const uint64_t *kv;  // [rows] addresses of [..][rank + rope]
  const int32_t *list, *count;  // [rows][stride], [rows]
  void *out;                    // [rows][heads][rank]
  int64_t rope_row, rope_head;
  int32_t rows, heads, rank, rope, stride;  // rank at most 512, rope at most 128
  float scale;
} ss_latent_attend_args;
SS_API int ss_latent_attend(const ss_latent_attend_args *args, ss_stream stream);

// ---- timing -------------------------------------------------------------------------------------

enum {
  SS_OP_EMPTY, SS_OP_MEMCPY, SS_OP_MEMSET, SS_OP_FILL, SS_OP_FLASH_H2D, SS_OP_GPU_SCATTER,
  SS_OP_MEMCPY_BLOCKS, SS_OP_FLASH_D2H, SS_OP_DECODE, SS_OP_PSA, SS_OP_PREFILL, SS_OP_DIGEST,
  SS_OP_SCORES, SS_OP_TOPK, SS_OP_SELECT, SS_OP_LINEAR, SS_OP_EMBED, SS_OP_RMSNORM, SS_OP_ROPE,
  SS_OP_SILU_MUL, SS_OP_ARGMAX,
  SS_OP_LOOKUP, SS_OP_TABLE, SS_OP_KV_WRITE,
  SS_OP_MI_ATTEND, SS_OP_MI_POOL, SS_OP_MI_BLOCKS, SS_OP_MI_ESTIMATE, SS_OP_MI_TOPK,
  SS_OP_MI_LINES, SS_OP_MI_GATHER, SS_OP_SWAP_IN,
  SS_OP_HEAD_LINEAR, SS_OP_ROTATE, SS_OP_LATENT_WRITE, SS_OP_INDEX_SCORES, SS_OP_LATENT_ATTEND,
  SS_OP_COUNT
};

enum {
  SS_CLOCK_EVENTS = 0,  // GPU time between two events around the call
  SS_CLOCK_WALL = 1,    // host time from the call until the GPU is idle
  SS_CLOCK_SUBMIT = 2,  // host time of the call, without the wait
};

typedef struct {
  int32_t op;
  const void *args;
} ss_call;

// Runs the calls in sequence as one sample, warmup + repeats times, and returns every sample of the
// repeats in milliseconds. With flush, a buffer of twice the L2 is read before each sample, outside
// the timed span: the sample starts with none of its data in the L2.
typedef struct {
  const ss_call *calls;
  int32_t n_calls;
  int32_t warmup, repeats;
  int32_t clock;
  int32_t flush;
  float *samples;  // host [repeats]
} ss_bench_args;
SS_API int ss_bench(const ss_bench_args *args);

// ss_bench while a second host thread repeats other calls on a stream of its own; mean_ms and runs:
// mean duration and number of its runs.
SS_API int ss_bench_overlapped(const ss_bench_args *args, const ss_call *calls, int32_t n_calls,
                               float *mean_ms, int32_t *runs);

#ifdef __cplusplus
}
#endif
#endif
