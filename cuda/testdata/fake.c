// A library with the interface of libsparseserve and no CUDA, for tests on machines without a GPU.
//
//   -DFAKE_VERSION=n     the version that ss_version returns
//   -DFAKE_WITHOUT_PSA   ss_psa is missing
//   -DFAKE_CODE=n        what ss_init returns, with a text of its own
//
// Operations check what the binding passes: each records the bytes of its arguments, which the tests compare.
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sparseserve.h"

#ifndef FAKE_VERSION
#define FAKE_VERSION SS_VERSION
#endif
#ifndef FAKE_CODE
#define FAKE_CODE SS_OK
#endif

static char text[256] = "";
static pthread_t first_thread;
static int calls;

// Every call must come from the thread of the first.
static int enter(const char *name) {
  if (calls++ == 0) first_thread = pthread_self();
  if (pthread_equal(first_thread, pthread_self())) return SS_OK;
  snprintf(text, sizeof text, "%s was called from another thread", name);
  return SS_ERR_CUDA;
}

SS_API int ss_version(void) { return FAKE_VERSION; }
SS_API const char *ss_last_error(void) { return text; }

SS_API int ss_init(int32_t device) {
  if (enter("ss_init")) return SS_ERR_CUDA;
  if (FAKE_CODE != SS_OK) snprintf(text, sizeof text, "fake failure of GPU %d", device);
  return FAKE_CODE;
}

SS_API int ss_device(ss_device_info *out) {
  memset(out, 0, sizeof *out);
  strcpy(out->name, "Fake GPU");
  out->memory_bytes = 11;
  out->memory_busy_bytes = 12;
  out->l2_bytes = 13;
  out->sm_count = 14;
  out->capability = 15;
  out->driver_version = 16;
  out->toolkit_version = 17;
  out->copy_engines = 18;
  out->shared_bytes = 19;
  return enter("ss_device");
}

// Device and pinned memory are host memory here.
SS_API int ss_device_alloc(void **out, int64_t bytes) { return (*out = malloc((size_t)bytes)) ? enter("ss_device_alloc") : SS_ERR_MEMORY; }
SS_API int ss_device_free(void *p) { return free(p), enter("ss_device_free"); }
SS_API int ss_host_alloc(void **out, int64_t bytes, int32_t kind) {
  if (kind != SS_HOST_PAGES && kind != SS_HOST_HUGE_PAGES) return SS_ERR_ARGUMENT;
  return ss_device_alloc(out, bytes);
}
SS_API int ss_host_free(void *p) { return ss_device_free(p); }

SS_API int ss_stream_create(ss_stream *out, int32_t high) { return *out = (ss_stream)(intptr_t)(high ? 101 : 100), enter("ss_stream_create"); }
SS_API int ss_stream_destroy(ss_stream s) { return s == (ss_stream)100 ? enter("ss_stream_destroy") : SS_ERR_ARGUMENT; }
SS_API int ss_stream_sync(ss_stream s) { return (void)s, enter("ss_stream_sync"); }
SS_API int ss_stream_wait(ss_stream s, ss_event e) { return s == (ss_stream)100 && e == (ss_event)200 ? enter("ss_stream_wait") : SS_ERR_ARGUMENT; }
SS_API int ss_event_create(ss_event *out, int32_t timed) { return *out = (ss_event)(intptr_t)(timed ? 200 : 201), enter("ss_event_create"); }
SS_API int ss_event_destroy(ss_event e) { return e == (ss_event)200 ? enter("ss_event_destroy") : SS_ERR_ARGUMENT; }
SS_API int ss_event_record(ss_event e, ss_stream s) { return s == (ss_stream)100 && e == (ss_event)200 ? enter("ss_event_record") : SS_ERR_ARGUMENT; }
SS_API int ss_event_query(ss_event e, int32_t *done) { return (void)e, *done = 1, enter("ss_event_query"); }
SS_API int ss_event_sync(ss_event e) { return (void)e, enter("ss_event_sync"); }
SS_API int ss_event_ms(ss_event a, ss_event b, float *ms) { return (void)a, (void)b, *ms = 2.5f, enter("ss_event_ms"); }
SS_API int ss_device_sync(void) { return enter("ss_device_sync"); }

SS_API int ss_memcpy(const ss_memcpy_args *a, ss_stream s) { return (void)s, memcpy(a->dst, a->src, (size_t)a->bytes), enter("ss_memcpy"); }
SS_API int ss_memset(const ss_memset_args *a, ss_stream s) { return (void)s, memset(a->dst, a->value, (size_t)a->bytes), enter("ss_memset"); }

// What the last operation got.
static unsigned char seen[512];
static size_t seen_bytes;
static void *seen_stream;
SS_API const void *fake_seen(size_t *bytes, void **stream) { return *bytes = seen_bytes, *stream = seen_stream, seen; }

#define OPERATION(name, type)                      \
  SS_API int name(const type *args, ss_stream s) { \
    memcpy(seen, args, seen_bytes = sizeof *args); \
    seen_stream = s;                               \
    return enter(#name);                           \
  }
OPERATION(ss_fill, ss_fill_args)
OPERATION(ss_flash_h2d, ss_blocks_args)
OPERATION(ss_gpu_scatter, ss_blocks_args)
OPERATION(ss_memcpy_blocks, ss_blocks_args)
OPERATION(ss_lookup, ss_lookup_args)
OPERATION(ss_table, ss_table_args)
OPERATION(ss_swap_in, ss_swap_in_args)
OPERATION(ss_head_linear, ss_head_linear_args)
OPERATION(ss_rotate, ss_rotate_args)
OPERATION(ss_latent_write, ss_latent_write_args)
OPERATION(ss_index_scores, ss_index_scores_args)
OPERATION(ss_latent_attend, ss_latent_attend_args)
OPERATION(ss_flash_d2h, ss_save_args)
OPERATION(ss_decode, ss_decode_args)
#ifndef FAKE_WITHOUT_PSA
OPERATION(ss_psa, ss_psa_args)
#endif
OPERATION(ss_prefill, ss_prefill_args)
OPERATION(ss_mi_attend, ss_mi_attend_args)
OPERATION(ss_mi_pool, ss_mi_pool_args)
OPERATION(ss_mi_blocks, ss_mi_blocks_args)
OPERATION(ss_mi_estimate, ss_mi_estimate_args)
OPERATION(ss_mi_topk, ss_mi_topk_args)
OPERATION(ss_mi_lines, ss_mi_lines_args)
OPERATION(ss_mi_gather, ss_mi_gather_args)
OPERATION(ss_digest, ss_digest_args)
OPERATION(ss_scores, ss_scores_args)
OPERATION(ss_topk, ss_topk_args)
OPERATION(ss_select, ss_select_args)
OPERATION(ss_linear, ss_linear_args)
OPERATION(ss_embed, ss_embed_args)
OPERATION(ss_rmsnorm, ss_rmsnorm_args)
OPERATION(ss_rope, ss_rope_args)
OPERATION(ss_kv_write, ss_rope_args)
OPERATION(ss_silu_mul, ss_silu_mul_args)
OPERATION(ss_argmax, ss_argmax_args)
SS_API int ss_empty(const void *a, ss_stream s) { return (void)a, (void)s, enter("ss_empty"); }

SS_API int ss_saver_create(ss_saver *out, int32_t threads, int64_t chunk, int32_t stages) {
  *out = (ss_saver)300;
  return threads == 3 && chunk == 1 << 20 && stages == 2 ? enter("ss_saver_create") : SS_ERR_ARGUMENT;
}
SS_API int ss_saver_destroy(ss_saver s) { return s == (ss_saver)300 ? enter("ss_saver_destroy") : SS_ERR_ARGUMENT; }
SS_API int ss_save_start(const ss_save_args *a) { return a->saver == (ss_saver)300 ? enter("ss_save_start") : SS_ERR_ARGUMENT; }
SS_API int ss_save_wait(ss_saver s) { return s == (ss_saver)300 ? enter("ss_save_wait") : SS_ERR_ARGUMENT; }

SS_API int ss_decode_workspace(const ss_decode_args *a, int64_t *bytes) { return *bytes = a->batch * 1000, enter("ss_decode_workspace"); }
SS_API int ss_lookup_state(const ss_lookup_args *a, int64_t *bytes) { return *bytes = a->batch * 3000, enter("ss_lookup_state"); }
SS_API int ss_psa_state(const ss_psa_args *a, int64_t *bytes) { return *bytes = a->batch * 2000, enter("ss_psa_state"); }

SS_API int ss_mi_estimate_workspace(const ss_mi_estimate_args *a, int64_t *bytes) { return *bytes = a->stride * 4, enter("ss_mi_estimate_workspace"); }
SS_API int ss_mi_topk_workspace(const ss_mi_topk_args *a, int64_t *bytes) { return *bytes = a->rows * 5000, enter("ss_mi_topk_workspace"); }
SS_API int ss_mi_kernel(const ss_mi_attend_args *a, int32_t *hopper) { return *hopper = a->sink > 0, enter("ss_mi_kernel"); }

SS_API int ss_linear_open(const char *path) {
  if (strcmp(path, "/nowhere") != 0) return enter("ss_linear_open");
  snprintf(text, sizeof text, "cuBLAS: %s", path);
  return SS_ERR_LIBRARY;
}

// Sample i is i + 1000 times the operation, so that a test sees both arrive.
SS_API int ss_bench(const ss_bench_args *a) {
  for (int i = 0; i < a->repeats; i++) a->samples[i] = (float)(i + 1000 * a->calls[a->n_calls - 1].op) + 0.5f * (float)a->flush + 0.25f * (float)a->clock;
  return enter("ss_bench");
}

SS_API int ss_bench_overlapped(const ss_bench_args *a, const ss_call *others, int32_t n, float *ms, int32_t *runs) {
  *ms = (float)others[n - 1].op;
  *runs = n;
  return ss_bench(a);
}

// Sizes and field offsets of the argument structs, in the order of the Go structs: size, then each field's offset, then -1; -2 ends the list.
#define AT(type, field) (int32_t)offsetof(type, field)
SS_API const int32_t *fake_layout(void) {
  static const int32_t layout[] = {
      sizeof(ss_memcpy_args), AT(ss_memcpy_args, dst), AT(ss_memcpy_args, src), AT(ss_memcpy_args, bytes), -1,
      sizeof(ss_memset_args), AT(ss_memset_args, dst), AT(ss_memset_args, bytes), AT(ss_memset_args, value), -1,
      sizeof(ss_fill_args), AT(ss_fill_args, dst), AT(ss_fill_args, count), AT(ss_fill_args, seed), AT(ss_fill_args, scale), -1,
      sizeof(ss_blocks_args), AT(ss_blocks_args, src), AT(ss_blocks_args, dst), AT(ss_blocks_args, count), AT(ss_blocks_args, block_bytes),
      AT(ss_blocks_args, owner), AT(ss_blocks_args, skip), AT(ss_blocks_args, ctas), AT(ss_blocks_args, counted), -1,
      sizeof(ss_lookup_args), AT(ss_lookup_args, table), AT(ss_lookup_args, cap), AT(ss_lookup_args, page), AT(ss_lookup_args, list),
      AT(ss_lookup_args, named), AT(ss_lookup_args, first), AT(ss_lookup_args, slot), AT(ss_lookup_args, free_slot), AT(ss_lookup_args, evicted),
      AT(ss_lookup_args, src), AT(ss_lookup_args, dst), AT(ss_lookup_args, before), AT(ss_lookup_args, loads), AT(ss_lookup_args, misses),
      AT(ss_lookup_args, state), AT(ss_lookup_args, pool), AT(ss_lookup_args, block_bytes), AT(ss_lookup_args, batch), AT(ss_lookup_args, heads),
      AT(ss_lookup_args, stride), AT(ss_lookup_args, page_stride), AT(ss_lookup_args, group), AT(ss_lookup_args, frees), AT(ss_lookup_args, evictions),
      AT(ss_lookup_args, rounds), AT(ss_lookup_args, micro), -1,
      sizeof(ss_table_args), AT(ss_table_args, evicted), AT(ss_table_args, entry), AT(ss_table_args, slot), AT(ss_table_args, evictions),
      AT(ss_table_args, entries), -1,
      sizeof(ss_swap_in_args), AT(ss_swap_in_args, list), AT(ss_swap_in_args, count), AT(ss_swap_in_args, context), AT(ss_swap_in_args, page),
      AT(ss_swap_in_args, buffer), AT(ss_swap_in_args, state), AT(ss_swap_in_args, fresh), AT(ss_swap_in_args, slot), AT(ss_swap_in_args, misses),
      AT(ss_swap_in_args, offset), AT(ss_swap_in_args, batch), AT(ss_swap_in_args, stride), AT(ss_swap_in_args, slots),
      AT(ss_swap_in_args, row_bytes), AT(ss_swap_in_args, page_stride), AT(ss_swap_in_args, page_tokens), -1,
      sizeof(ss_head_linear_args), AT(ss_head_linear_args, x), AT(ss_head_linear_args, w), AT(ss_head_linear_args, y), AT(ss_head_linear_args, x_token), AT(ss_head_linear_args, x_head), AT(ss_head_linear_args, tokens), AT(ss_head_linear_args, heads), AT(ss_head_linear_args, in), AT(ss_head_linear_args, out), -1,
      sizeof(ss_rotate_args), AT(ss_rotate_args, x), AT(ss_rotate_args, position), AT(ss_rotate_args, inv_freq), AT(ss_rotate_args, token_stride), AT(ss_rotate_args, head_stride), AT(ss_rotate_args, tokens), AT(ss_rotate_args, heads), AT(ss_rotate_args, dim), -1,
      sizeof(ss_latent_write_args), AT(ss_latent_write_args, latent), AT(ss_latent_write_args, key), AT(ss_latent_write_args, norm), AT(ss_latent_write_args, key_norm), AT(ss_latent_write_args, key_bias), AT(ss_latent_write_args, position), AT(ss_latent_write_args, inv_freq), AT(ss_latent_write_args, row_to), AT(ss_latent_write_args, key_to), AT(ss_latent_write_args, tokens), AT(ss_latent_write_args, rank), AT(ss_latent_write_args, rope), AT(ss_latent_write_args, key_dim), AT(ss_latent_write_args, eps), -1,
      sizeof(ss_index_scores_args), AT(ss_index_scores_args, q), AT(ss_index_scores_args, weight), AT(ss_index_scores_args, key), AT(ss_index_scores_args, context), AT(ss_index_scores_args, scores), AT(ss_index_scores_args, rows), AT(ss_index_scores_args, heads), AT(ss_index_scores_args, dim), AT(ss_index_scores_args, stride), AT(ss_index_scores_args, scale), -1,
      sizeof(ss_latent_attend_args), AT(ss_latent_attend_args, q), AT(ss_latent_attend_args, q_rope), AT(ss_latent_attend_args, kv), AT(ss_latent_attend_args, list), AT(ss_latent_attend_args, count), AT(ss_latent_attend_args, out), AT(ss_latent_attend_args, rope_row), AT(ss_latent_attend_args, rope_head), AT(ss_latent_attend_args, rows), AT(ss_latent_attend_args, heads), AT(ss_latent_attend_args, rank), AT(ss_latent_attend_args, rope), AT(ss_latent_attend_args, stride), AT(ss_latent_attend_args, scale), -1,
      sizeof(ss_save_args), AT(ss_save_args, saver), AT(ss_save_args, src), AT(ss_save_args, dst), AT(ss_save_args, count), AT(ss_save_args, block_bytes),
      AT(ss_save_args, after), -1,
      sizeof(ss_decode_args), AT(ss_decode_args, q), AT(ss_decode_args, pool), AT(ss_decode_args, table), AT(ss_decode_args, context), AT(ss_decode_args, list),
      AT(ss_decode_args, count), AT(ss_decode_args, out), AT(ss_decode_args, lse), AT(ss_decode_args, workspace), AT(ss_decode_args, batch),
      AT(ss_decode_args, heads_q), AT(ss_decode_args, heads_kv), AT(ss_decode_args, head_dim), AT(ss_decode_args, block_tokens),
      AT(ss_decode_args, table_stride), AT(ss_decode_args, list_stride), AT(ss_decode_args, max_blocks), AT(ss_decode_args, splits), AT(ss_decode_args, scale),
      AT(ss_decode_args, pages), AT(ss_decode_args, slot), -1,
      sizeof(ss_psa_args), AT(ss_psa_args, q), AT(ss_psa_args, pool), AT(ss_psa_args, table), AT(ss_psa_args, context), AT(ss_psa_args, order),
      AT(ss_psa_args, count), AT(ss_psa_args, out), AT(ss_psa_args, used), AT(ss_psa_args, done), AT(ss_psa_args, state), AT(ss_psa_args, flag),
      AT(ss_psa_args, batch), AT(ss_psa_args, heads_q), AT(ss_psa_args, heads_kv), AT(ss_psa_args, head_dim), AT(ss_psa_args, block_tokens),
      AT(ss_psa_args, table_stride), AT(ss_psa_args, order_stride), AT(ss_psa_args, micro), AT(ss_psa_args, first), AT(ss_psa_args, steps),
      AT(ss_psa_args, scale), AT(ss_psa_args, epsilon), AT(ss_psa_args, slot), -1,
      sizeof(ss_prefill_args), AT(ss_prefill_args, q), AT(ss_prefill_args, k), AT(ss_prefill_args, v), AT(ss_prefill_args, out),
      AT(ss_prefill_args, q_token_stride), AT(ss_prefill_args, q_head_stride), AT(ss_prefill_args, k_token_stride), AT(ss_prefill_args, k_head_stride),
      AT(ss_prefill_args, v_token_stride), AT(ss_prefill_args, v_head_stride), AT(ss_prefill_args, out_token_stride), AT(ss_prefill_args, out_head_stride),
      AT(ss_prefill_args, q_tokens), AT(ss_prefill_args, prefix), AT(ss_prefill_args, heads_q), AT(ss_prefill_args, heads_kv), AT(ss_prefill_args, head_dim),
      AT(ss_prefill_args, scale), AT(ss_prefill_args, pool), AT(ss_prefill_args, table), AT(ss_prefill_args, table_stride), AT(ss_prefill_args, block_tokens), -1,
      sizeof(ss_mi_attend_args), AT(ss_mi_attend_args, prefill), AT(ss_mi_attend_args, sink), AT(ss_mi_attend_args, window),
      AT(ss_mi_attend_args, block_stride), AT(ss_mi_attend_args, column_stride), AT(ss_mi_attend_args, blocks), AT(ss_mi_attend_args, columns),
      AT(ss_mi_attend_args, counts), -1,
      sizeof(ss_mi_pool_args), AT(ss_mi_pool_args, x), AT(ss_mi_pool_args, out), AT(ss_mi_pool_args, token_stride), AT(ss_mi_pool_args, head_stride),
      AT(ss_mi_pool_args, tokens), AT(ss_mi_pool_args, heads), -1,
      sizeof(ss_mi_blocks_args), AT(ss_mi_blocks_args, q), AT(ss_mi_blocks_args, k), AT(ss_mi_blocks_args, blocks), AT(ss_mi_blocks_args, counts),
      AT(ss_mi_blocks_args, scores), AT(ss_mi_blocks_args, score_count), AT(ss_mi_blocks_args, q_tokens), AT(ss_mi_blocks_args, prefix),
      AT(ss_mi_blocks_args, heads_q), AT(ss_mi_blocks_args, heads_kv), AT(ss_mi_blocks_args, block_stride), AT(ss_mi_blocks_args, top), -1,
      sizeof(ss_mi_estimate_args), AT(ss_mi_estimate_args, prefill), AT(ss_mi_estimate_args, vertical), AT(ss_mi_estimate_args, slash),
      AT(ss_mi_estimate_args, workspace), AT(ss_mi_estimate_args, stride), -1,
      sizeof(ss_mi_topk_args), AT(ss_mi_topk_args, scores), AT(ss_mi_topk_args, list), AT(ss_mi_topk_args, workspace),
      AT(ss_mi_topk_args, score_stride), AT(ss_mi_topk_args, list_stride), AT(ss_mi_topk_args, rows), AT(ss_mi_topk_args, n), AT(ss_mi_topk_args, k),
      AT(ss_mi_topk_args, first), -1,
      sizeof(ss_mi_lines_args), AT(ss_mi_lines_args, vertical), AT(ss_mi_lines_args, slash), AT(ss_mi_lines_args, blocks),
      AT(ss_mi_lines_args, columns), AT(ss_mi_lines_args, counts), AT(ss_mi_lines_args, vertical_stride), AT(ss_mi_lines_args, slash_stride),
      AT(ss_mi_lines_args, vertical_count), AT(ss_mi_lines_args, slash_count), AT(ss_mi_lines_args, heads_q), AT(ss_mi_lines_args, q_tokens),
      AT(ss_mi_lines_args, prefix), AT(ss_mi_lines_args, block_stride), AT(ss_mi_lines_args, column_stride), -1,
      sizeof(ss_mi_gather_args), AT(ss_mi_gather_args, pool), AT(ss_mi_gather_args, table), AT(ss_mi_gather_args, k), AT(ss_mi_gather_args, v),
      AT(ss_mi_gather_args, head_stride), AT(ss_mi_gather_args, table_stride), AT(ss_mi_gather_args, tokens), AT(ss_mi_gather_args, heads),
      AT(ss_mi_gather_args, block_tokens), -1,
      sizeof(ss_digest_args), AT(ss_digest_args, pool), AT(ss_digest_args, slot), AT(ss_digest_args, dst), AT(ss_digest_args, meta), AT(ss_digest_args, count),
      AT(ss_digest_args, head_dim), AT(ss_digest_args, block_tokens), -1,
      sizeof(ss_scores_args), AT(ss_scores_args, q), AT(ss_scores_args, meta), AT(ss_scores_args, first), AT(ss_scores_args, count), AT(ss_scores_args, scores),
      AT(ss_scores_args, batch), AT(ss_scores_args, heads_q), AT(ss_scores_args, heads_kv), AT(ss_scores_args, head_dim), AT(ss_scores_args, score_stride),
      AT(ss_scores_args, max_blocks), -1,
      sizeof(ss_topk_args), AT(ss_topk_args, scores), AT(ss_topk_args, blocks), AT(ss_topk_args, list), AT(ss_topk_args, count), AT(ss_topk_args, units),
      AT(ss_topk_args, score_stride), AT(ss_topk_args, list_stride), AT(ss_topk_args, k), AT(ss_topk_args, sink), AT(ss_topk_args, window), -1,
      sizeof(ss_select_args), AT(ss_select_args, scores), AT(ss_select_args, topk), AT(ss_select_args, arrived), -1,
      sizeof(ss_linear_args), AT(ss_linear_args, x), AT(ss_linear_args, w), AT(ss_linear_args, y), AT(ss_linear_args, tokens), AT(ss_linear_args, in),
      AT(ss_linear_args, out), -1,
      sizeof(ss_embed_args), AT(ss_embed_args, table), AT(ss_embed_args, token), AT(ss_embed_args, out), AT(ss_embed_args, tokens), AT(ss_embed_args, hidden), -1,
      sizeof(ss_rmsnorm_args), AT(ss_rmsnorm_args, x), AT(ss_rmsnorm_args, residual), AT(ss_rmsnorm_args, weight), AT(ss_rmsnorm_args, out), AT(ss_rmsnorm_args, row), AT(ss_rmsnorm_args, rows), AT(ss_rmsnorm_args, hidden), AT(ss_rmsnorm_args, eps), -1,
      sizeof(ss_rope_args), AT(ss_rope_args, qkv), AT(ss_rope_args, position), AT(ss_rope_args, inv_freq), AT(ss_rope_args, q_out), AT(ss_rope_args, pool),
      AT(ss_rope_args, table), AT(ss_rope_args, row), AT(ss_rope_args, first), AT(ss_rope_args, row_stride), AT(ss_rope_args, head_stride),
      AT(ss_rope_args, tokens), AT(ss_rope_args, heads_q), AT(ss_rope_args, heads_kv), AT(ss_rope_args, head_dim), AT(ss_rope_args, block_tokens), AT(ss_rope_args, pages), -1,
      sizeof(ss_silu_mul_args), AT(ss_silu_mul_args, x), AT(ss_silu_mul_args, out), AT(ss_silu_mul_args, tokens), AT(ss_silu_mul_args, ffn), -1,
      sizeof(ss_argmax_args), AT(ss_argmax_args, logits), AT(ss_argmax_args, out), AT(ss_argmax_args, rows), AT(ss_argmax_args, vocab), AT(ss_argmax_args, stride), -1,
      sizeof(ss_device_info), AT(ss_device_info, name), AT(ss_device_info, memory_bytes), AT(ss_device_info, memory_busy_bytes), AT(ss_device_info, l2_bytes),
      AT(ss_device_info, sm_count), AT(ss_device_info, capability), AT(ss_device_info, driver_version), AT(ss_device_info, toolkit_version),
      AT(ss_device_info, copy_engines), AT(ss_device_info, shared_bytes), -1,
      sizeof(ss_bench_args), AT(ss_bench_args, calls), AT(ss_bench_args, n_calls), AT(ss_bench_args, warmup), AT(ss_bench_args, repeats),
      AT(ss_bench_args, clock), AT(ss_bench_args, flush), AT(ss_bench_args, samples), -1,
      sizeof(ss_call), AT(ss_call, op), AT(ss_call, args), -1, -2};
  return layout;
}

// The header's operation numbers, in the order of its list.
SS_API const int32_t *fake_operations(void) {
  static const int32_t operations[] = {
      SS_OP_EMPTY, SS_OP_MEMCPY, SS_OP_MEMSET, SS_OP_FILL, SS_OP_FLASH_H2D, SS_OP_GPU_SCATTER, SS_OP_MEMCPY_BLOCKS, SS_OP_FLASH_D2H,
      SS_OP_DECODE, SS_OP_PSA, SS_OP_PREFILL, SS_OP_DIGEST, SS_OP_SCORES, SS_OP_TOPK, SS_OP_SELECT, SS_OP_LINEAR, SS_OP_EMBED, SS_OP_RMSNORM, SS_OP_ROPE, SS_OP_SILU_MUL, SS_OP_ARGMAX,
      SS_OP_LOOKUP, SS_OP_TABLE, SS_OP_KV_WRITE,
      SS_OP_MI_ATTEND, SS_OP_MI_POOL, SS_OP_MI_BLOCKS, SS_OP_MI_ESTIMATE, SS_OP_MI_TOPK, SS_OP_MI_LINES, SS_OP_MI_GATHER, SS_OP_SWAP_IN,
      SS_OP_HEAD_LINEAR, SS_OP_ROTATE, SS_OP_LATENT_WRITE, SS_OP_INDEX_SCORES, SS_OP_LATENT_ATTEND,

      SS_OP_COUNT};
  return operations;
}
