// Which blocks of which units a CTA of decode attention reads (decode.cu).
//
// Dense, small batches: a CTA has one piece, of at most as many blocks as give all pieces a CTA.
// While that is not much more than an equal share of all blocks, a CTA with two pieces would be
// slower, and so would all that wait for it.
//
// Dense, else: the units' blocks stand in a row, unit after unit, and the CTAs get equal runs of
// it. So time follows the sum of the contexts and not the longest one. A run may end one unit, hold
// whole ones and begin another. A unit shorter than a run adds a piece to some CTA; such a piece
// costs as much as kFixedBlocks blocks, so the unit is preceded by that number of empty places.
// With equal contexts and a multiple of the units for CTAs no run crosses from one unit to the
// next.
//
// Lists: equally many CTAs a unit; lists of one launch have about the same length.
//
// Contexts are known on the GPU only. Each warp of each CTA scans all of them, which is faster
// than a launch or a barrier.
#pragma once

#include "common.cuh"

namespace ss {

constexpr int kDecodeWarps = 4;
constexpr int kFixedBlocks = 4;  // what a piece's beginning and end cost, in blocks

struct DecodeShape {
  ss_decode_args a;
  int group;   // query heads of a unit
  int splits;  // CTAs of a unit, of lists
  int ctas;
  int most;  // CTAs where each has one piece; 0: that is not to be
  int64_t block_bytes;
};

struct Piece {
  int request, unit;
  int first, end;   // blocks of the unit, or entries of its list
  int part, parts;  // this is piece `part` of the unit's `parts`
  int home;         // CTA of part 0; later CTAs have the other parts
};

class Pieces {
 public:
  __device__ explicit Pieces(const DecodeShape &shape) : shape(shape) {
    if (shape.a.list != nullptr) return;
    const int heads = shape.a.heads_kv;
    total = int64_t(heads) * sum([this](int r) { return blocks_of(r); });
    if (shape.most > 0 && cut_whole()) return;
    row = int64_t(heads) * sum([this](int r) { return places_of(blocks_of(r)); });
    ctas = row < shape.ctas ? row : shape.ctas;  // each has a place
    if (cta >= ctas) return;
    from = cta * row / ctas, to = (cta + 1) * row / ctas;
    find(from, [this](int r) { return places_of(blocks_of(r)); });
  }

  // The CTA's next piece; all threads get the same. False at the end.
  __device__ bool next(Piece *piece) {
    if (shape.a.list != nullptr) return next_of_lists(piece);
    if (whole) return next_whole(piece);
    if (begin >= to) return false;
    const int empty = places - blocks;
    const int64_t end = begin + places;
    piece->request = request;
    piece->unit = request * shape.a.heads_kv + head;
    piece->first = begin + empty < from ? int(from - begin) - empty : 0;
    piece->end = end <= to ? blocks : max(0, int(to - begin) - empty);
    piece->home = begin >= from ? cta : owner(begin);
    piece->part = int(cta) - piece->home;
    piece->parts = (end <= to ? int(cta) : owner(end - 1)) - piece->home + 1;
    begin = end;
    if (++head == shape.a.heads_kv) {
      head = 0;
      if (++request < shape.a.batch) measure();
    }
    return true;
  }

 private:
  const DecodeShape &shape;
  const int64_t cta = blockIdx.x;
  int64_t total = 0, row = 0, ctas = 0;  // blocks of all units; places; CTAs that have some
  int64_t from = 0, to = 0;              // places of this CTA
  int64_t begin = 0;                     // place of the unit (request, head)
  int request = 0, head = 0, blocks = 0, places = 0;
  bool whole = false;  // a CTA has one piece, and places are the unit's pieces

  __device__ int blocks_of(int r) const {
    return (shape.a.context[r] + shape.a.block_tokens - 1) / shape.a.block_tokens;
  }

  __device__ int places_of(int n) const {
    return n + (n == 0 || int64_t(n) * shape.ctas < total ? kFixedBlocks : 0);
  }

  __device__ void measure() { blocks = blocks_of(request), places = places_of(blocks); }

  // CTA of a place: the last c with c * row / ctas <= place.
  __device__ int owner(int64_t place) const { return int(((place + 1) * ctas - 1) / row); }

  // Sum over the requests, by the lanes of a warp.
  template <typename Of>
  __device__ int64_t sum(Of of) const {
    unsigned mine = 0;
    for (int r = threadIdx.x % 32; r < shape.a.batch; r += 32) mine += of(r);
    return __reduce_add_sync(~0u, mine);
  }

  __device__ static int parts_of(int blocks, int share) {
    return blocks > share ? (blocks + share - 1) / share : 1;
  }

  // Gives each CTA one piece of at most `share` blocks if that is at most kFixedBlocks more than an
  // equal share. Lanes try a share each, and each of them a part of the requests.
  __device__ bool cut_whole() {
    constexpr int kShares = 8;
    static_assert(kFixedBlocks < kShares, "a lane for each share");
    const int lane = threadIdx.x % 32,
              least = max(kDecodeWarps, int((total + shape.most - 1) / shape.most)),
              share = least + lane % kShares;
    int pieces = 0;
    for (int r = lane / kShares; r < shape.a.batch; r += 32 / kShares)
      pieces += parts_of(blocks_of(r), share);
#pragma unroll
    for (int step = kShares; step < 32; step *= 2) pieces += __shfl_xor_sync(~0u, pieces, step);
    pieces *= shape.a.heads_kv;
    const unsigned fits = __ballot_sync(~0u, pieces <= shape.most && lane <= kFixedBlocks);
    if (fits == 0) return false;
    whole = true;
    const int best = __ffs(fits) - 1;
    if (cta < __shfl_sync(~0u, pieces, best)) {
      find(cta, [this, least, best](int r) { return parts_of(blocks_of(r), least + best); });
      from = cta, to = cta + 1;
    }
    return true;
  }

  __device__ bool next_whole(Piece *piece) {
    if (from >= to) return false;
    from = to;
    const int share = (blocks + places - 1) / places;
    piece->request = request;
    piece->unit = request * shape.a.heads_kv + head;
    piece->home = int(begin);
    piece->part = int(cta - begin), piece->parts = places;
    piece->first = min(blocks, piece->part * share);
    piece->end = min(blocks, piece->first + share);
    return true;
  }

  // The unit that has a place, where each unit of a request has of(request).
  template <typename Of>
  __device__ void find(int64_t place, Of of) {
    const int lane = threadIdx.x % 32, heads = shape.a.heads_kv;
    int64_t before = 0;  // places of one head's units of the requests before
    for (int first = 0;; first += 32) {
      int up_to = first + lane < shape.a.batch ? of(first + lane) : 0;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(~0u, up_to, step);
        if (lane >= step) up_to += other;
      }
      const unsigned beyond = __ballot_sync(~0u, place < (before + up_to) * heads);
      if (beyond != 0) {
        const int at = __ffs(beyond) - 1;
        const int last = __shfl_sync(~0u, up_to, at);
        request = first + at;
        blocks = blocks_of(request), places = of(request);
        begin = (before + last - places) * heads;
        break;
      }
      before += __shfl_sync(~0u, up_to, 31);
    }
    head = int((place - begin) / places);
    begin += int64_t(head) * places;
  }

  __device__ bool next_of_lists(Piece *piece) {
    if (request > 0) return false;  // one piece a CTA
    request = 1;
    const int splits = shape.splits;
    piece->unit = int(cta) / splits;
    piece->request = piece->unit / shape.a.heads_kv;
    piece->part = int(cta) % splits, piece->parts = splits;
    piece->home = piece->unit * splits;
    const int entries = shape.a.count[piece->unit], share = (entries + splits - 1) / splits;
    piece->first = piece->part * share;
    piece->end = min(entries, piece->first + share);
    return true;
  }
};

}  // namespace ss
