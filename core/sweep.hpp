// Sweeps of a soft tree of linear questions over one batch: everything between theta and the gradient.
//
// A batch is cut into tiles of V * 16 rows, transposed so that a vector register holds one number of 16 rows. Phases:
//   down      per tile   scores (matrix product) -> gates -> reach -> sums of the leaves, S = reach^T s
//   up        per tile   expected costs from the leaves' slopes; score cotangents
//   gradient  per node   theta_bar = Z_bar^T X
// A visit is a (tile, node) pair, listed level by level. With tolerance > 0 a tile visits a child only if some row of
// it arrives with more than that probability: a lazy sweep. What is cut has reach below the tolerance; its gate's
// gradient is taken as 0. One number per row and visit is kept between phases (the gate, later its cotangent); reach is
// cheaper to make again than to store. Each phase is a set of independent tasks and every sum has a fixed order, so
// results do not depend on threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "lanes.hpp"
#include "parallel.hpp"

namespace softwood {

constexpr std::int32_t kSkipped = INT32_MIN;

// The shape of a binary tree by its internal nodes, in breadth-first order. A child is an internal number >= 0, or
// ~leaf number.
struct SoftShape {
  std::int32_t n_internal = 0, n_leaves = 0;
  std::vector<std::int32_t> child;  // (n_internal, 2)

  static SoftShape of(const std::int32_t* first_child, std::int64_t m) {
    SoftShape shape;
    std::vector<std::int32_t> name(m);
    for (std::int64_t k = 0; k < m; ++k) name[k] = first_child[k] ? shape.n_internal++ : ~shape.n_leaves++;
    for (std::int64_t k = 0; k < m; ++k) {
      if (!first_child[k]) continue;
      shape.child.push_back(name[first_child[k]]);
      shape.child.push_back(name[first_child[k] + 1]);
    }
    return shape;
  }
};

// Rows of a source: standardised columns and statistics, dense or as class codes with weights.
struct SoftRows {
  const float* Z;              // (n, p)
  const std::int32_t* codes;   // (n,) or null
  const float* s;              // (n, d), or (n,) weights with codes
  std::int64_t n, p, d;
};

struct Place {
  std::int32_t tile, slot;
};

template <class T>
struct Buffer {
  std::unique_ptr<T[], void (*)(T*)> data{nullptr, [](T*) {}};
  std::size_t size = 0;
  T* get() const { return data.get(); }
  void reserve(std::size_t wanted) {
    if (wanted <= size) return;
    void* raw = ::operator new[](wanted * sizeof(T), std::align_val_t{64});
    data = {static_cast<T*>(raw), [](T* p) { ::operator delete[](p, std::align_val_t{64}); }};
    size = wanted;
  }
};

struct Tile {
  float *X, *s;           // (p, R), (n_columns, R)
  float* P;               // (visits, R) gates; after the sweep up, Z_bar
  std::int32_t* node;     // (visits,)
  std::int32_t* child;    // (visits, 2) slot of the child's visit, ~leaf, or kSkipped
  std::int32_t* column;   // (n_columns,) which statistics s holds: of class counts only the classes present
  std::int32_t n_visits, n_columns;
};

// Where a tile's leaves go: sums (leaves, d), and each row's likeliest leaf so far if wanted.
struct LeafSink {
  float* S;
  std::int64_t d;
  Lanes* best;          // (V,) or null
  IntLanes* which;      // (V,)
};

template <int V>
SOFTWOOD_INLINE void fill_columns(const SoftRows& rows, const std::int32_t* batch, std::int64_t count, Tile& tile) {
  constexpr int R = V * kLanes;
  static constexpr float kNothing[4] = {0, 0, 0, 0};  // rows past the batch's end: no matter, they weigh nothing
  for (int r = 0; r < R; r += 4) {
    const float* z[4];
    for (int i = 0; i < 4; ++i) z[i] = r + i < count ? rows.Z + batch[r + i] * rows.p : nullptr;
    std::int64_t j = 0;
    for (; j + 4 <= rows.p; j += 4) {
      const float* at[4];
      for (int i = 0; i < 4; ++i) at[i] = z[i] ? z[i] + j : kNothing;
      transpose(at, tile.X + j * R + r, R);
    }
    for (; j < rows.p; ++j) {
      for (int i = 0; i < 4; ++i) tile.X[j * R + r + i] = z[i] ? z[i][j] : 0.0f;
    }
  }
}

// Class counts: one column per class present, found by looking where the last row's class is first.
template <int V>
SOFTWOOD_INLINE void fill_classes(const SoftRows& rows, const std::int32_t* batch, std::int64_t count, Tile& tile) {
  constexpr int R = V * kLanes;
  tile.n_columns = 0;
  for (int r = 0; r < R && r < count; ++r) {
    const std::int32_t code = rows.codes[batch[r]];
    std::int32_t at = tile.n_columns - 1;
    while (at >= 0 && tile.column[at] != code) --at;
    if (at < 0) {
      at = tile.n_columns++;
      tile.column[at] = code;
      std::fill(tile.s + at * R, tile.s + (at + 1) * R, 0.0f);
    }
    tile.s[at * R + r] = rows.s[batch[r]];
  }
}

template <int V>
SOFTWOOD_INLINE void fill_statistics(const SoftRows& rows, const std::int32_t* batch, std::int64_t count, Tile& tile) {
  constexpr int R = V * kLanes;
  tile.n_columns = static_cast<std::int32_t>(rows.d);
  for (std::int64_t c = 0; c < rows.d; ++c) {
    tile.column[c] = static_cast<std::int32_t>(c);
    for (int r = 0; r < R; ++r) tile.s[c * R + r] = r < count ? rows.s[batch[r] * rows.d + c] : 0.0f;
  }
}

// Scores of K visits side by side: sixteen sums in registers.
template <int K, int V>
SOFTWOOD_INLINE void score_visits(const float* theta,  // (n_internal, p + 1)
                                  std::int64_t p, Tile& tile, std::int32_t slot) {
  constexpr int R = V * kLanes;
  const float* w[K];
  Lanes z[K][V];
  for (int k = 0; k < K; ++k) {
    w[k] = theta + tile.node[slot + k] * (p + 1);
    for (int v = 0; v < V; ++v) z[k][v] = Lanes{} + w[k][p];
  }
  for (std::int64_t j = 0; j < p; ++j) {
    Lanes x[V];
    for (int v = 0; v < V; ++v) load(x[v], tile.X + j * R + v * kLanes);
    for (int k = 0; k < K; ++k) {
      for (int v = 0; v < V; ++v) z[k][v] += w[k][j] * x[v];
    }
  }
  for (int k = 0; k < K; ++k) {
    for (int v = 0; v < V; ++v) store(z[k][v], tile.P + (slot + k) * R + v * kLanes);
  }
}

// Adds what reaches a leaf to its sums.
template <int V>
SOFTWOOD_INLINE void drop_in_leaf(std::int32_t leaf, const Lanes* reach, const Tile& tile, LeafSink& sink) {
  constexpr int R = V * kLanes;
  float* S = sink.S + leaf * sink.d;
  for (std::int32_t c = 0; c < tile.n_columns; ++c) {
    Lanes total = Lanes{};
    for (int v = 0; v < V; ++v) {
      Lanes s;
      load(s, tile.s + c * R + v * kLanes);
      total += reach[v] * s;
    }
    S[tile.column[c]] += sum(total);
  }
  for (int v = 0; sink.best && v < V; ++v) {
    const IntLanes better = reach[v] > sink.best[v];
    sink.which[v] = better ? IntLanes{} + leaf : sink.which[v];
    sink.best[v] = better ? reach[v] : sink.best[v];
  }
}

// Takes the rows of a tile to one child: a new visit, a leaf, or nothing where nobody arrives.
template <int V>
SOFTWOOD_INLINE std::int32_t enter(std::int32_t child, const Lanes* reach, float tolerance, Tile& tile, float* scratch,
                                   std::int32_t& end, LeafSink& sink) {
  constexpr int R = V * kLanes;
  if (tolerance > 0) {
    bool arrives = false;
    for (int v = 0; v < V; ++v) arrives |= any_above(reach[v], tolerance);
    if (!arrives) return kSkipped;
  }
  if (child < 0) {
    drop_in_leaf<V>(~child, reach, tile, sink);
    return child;
  }
  const std::int32_t slot = end++;
  for (int v = 0; v < V; ++v) store(reach[v], scratch + static_cast<std::int64_t>(slot) * R + v * kLanes);
  tile.node[slot] = child;
  return slot;
}

template <int V>
SOFTWOOD_INLINE void open_gate(const SoftShape& shape, float tolerance, Tile& tile, float* scratch, std::int32_t slot,
                               std::int32_t& end, LeafSink& sink) {
  constexpr int R = V * kLanes;
  Lanes reach[2][V];
  for (int v = 0; v < V; ++v) {
    float* P = tile.P + static_cast<std::int64_t>(slot) * R + v * kLanes;
    Lanes z, left, right, here;
    load(z, P);
    load(here, scratch + static_cast<std::int64_t>(slot) * R + v * kLanes);
    sigmoid(z, left, right);
    reach[0][v] = here * left;
    reach[1][v] = here * right;
    store(right, P);
  }
  const std::int32_t node = tile.node[slot];
  for (int side = 0; side < 2; ++side) {
    tile.child[2 * slot + side] =
        enter<V>(shape.child[2 * node + side], reach[side], tolerance, tile, scratch, end, sink);
  }
}

// Scores, gates and reach of one tile, level by level, down to the leaves' sums.
template <int V, int K>
SOFTWOOD_INLINE void sweep_tile_down(const SoftShape& shape, const float* theta, std::int64_t p, float tolerance,
                                     Tile& tile, float* scratch, LeafSink& sink) {
  constexpr int R = V * kLanes;
  tile.node[0] = 0;
  for (int r = 0; r < R; ++r) scratch[r] = 1;
  std::int32_t begin = 0, end = 1;
  while (begin < end) {
    std::int32_t slot = begin;
    for (; slot + K <= end; slot += K) score_visits<K, V>(theta, p, tile, slot);
    for (; slot + 2 <= end; slot += 2) score_visits<2, V>(theta, p, tile, slot);
    if (slot < end) score_visits<1, V>(theta, p, tile, slot);
    const std::int32_t level_end = end;
    for (slot = begin; slot < level_end; ++slot) open_gate<V>(shape, tolerance, tile, scratch, slot, end, sink);
    begin = level_end;
  }
  tile.n_visits = end;
}

// reach of every visit again, from the gates.
template <int V>
SOFTWOOD_INLINE void reach_again(const Tile& tile, float* scratch) {
  constexpr int R = V * kLanes;
  for (int r = 0; r < R; ++r) scratch[r] = 1;
  for (std::int32_t slot = 0; slot < tile.n_visits; ++slot) {
    const std::int32_t left = tile.child[2 * slot], right = tile.child[2 * slot + 1];
    for (int v = 0; v < V; ++v) {
      Lanes P, here;
      load(P, tile.P + static_cast<std::int64_t>(slot) * R + v * kLanes);
      load(here, scratch + static_cast<std::int64_t>(slot) * R + v * kLanes);
      const Lanes taken = here * P;
      if (left >= 0) store(here - taken, scratch + static_cast<std::int64_t>(left) * R + v * kLanes);
      if (right >= 0) store(taken, scratch + static_cast<std::int64_t>(right) * R + v * kLanes);
    }
  }
}

// Expected cost of a child: a leaf's slope against the rows' statistics, or what its own visit left in scratch.
template <int V>
SOFTWOOD_INLINE void cost_of(std::int32_t child, const float* slope, std::int64_t d, const Tile& tile,
                             const float* scratch, Lanes* cost) {
  constexpr int R = V * kLanes;
  if (child >= 0) {
    for (int v = 0; v < V; ++v) load(cost[v], scratch + static_cast<std::int64_t>(child) * R + v * kLanes);
    return;
  }
  const float* a = slope + ~child * d;
  for (int v = 0; v < V; ++v) cost[v] = Lanes{};
  for (std::int32_t c = 0; c < tile.n_columns; ++c) {
    for (int v = 0; v < V; ++v) {
      Lanes s;
      load(s, tile.s + c * R + v * kLanes);
      cost[v] += a[tile.column[c]] * s;
    }
  }
}

// Costs from the leaves to the root; leaves each visit's Z_bar in P.
template <int V>
SOFTWOOD_INLINE void sweep_tile_up(const float* slope,  // (leaves, d)
                                   std::int64_t d, Tile& tile, float* scratch) {
  constexpr int R = V * kLanes;
  reach_again<V>(tile, scratch);
  for (std::int32_t slot = tile.n_visits - 1; slot >= 0; --slot) {
    Lanes cost[2][V];
    const std::int32_t left = tile.child[2 * slot], right = tile.child[2 * slot + 1];
    // A branch nobody enters costs what its sibling costs: no difference, no gradient.
    if (left != kSkipped) cost_of<V>(left, slope, d, tile, scratch, cost[0]);
    if (right != kSkipped) cost_of<V>(right, slope, d, tile, scratch, cost[1]);
    for (int v = 0; v < V; ++v) {
      const Lanes low = left != kSkipped ? cost[0][v] : right != kSkipped ? cost[1][v] : Lanes{};
      const Lanes gap = right != kSkipped ? cost[1][v] - low : Lanes{};
      float* P = tile.P + static_cast<std::int64_t>(slot) * R + v * kLanes;
      float* here = scratch + static_cast<std::int64_t>(slot) * R + v * kLanes;
      Lanes probability, reach;
      load(probability, P);
      load(reach, here);
      const Lanes step = probability * gap;
      store(reach * (step - probability * step), P);
      store(low + step, here);
    }
  }
}

// out[k][c] = sum over rows of Z_bar[k] X[c] for K neighbouring slots and C neighbouring columns; with kOffset also
// out[k][C] = sum over rows of Z_bar[k].
template <int K, int C, int V, bool kOffset>
SOFTWOOD_INLINE void lane_products(const Place* places, std::int32_t n_places, const Tile* tiles, std::int64_t column,
                                   float* out, std::int64_t stride) {
  constexpr int R = V * kLanes;
  Lanes acc[K][C] = {}, offset[K] = {};
  for (std::int32_t i = 0; i < n_places; ++i) {
    const float* z = tiles[places[i].tile].P + static_cast<std::int64_t>(places[i].slot) * R;
    const float* x = tiles[places[i].tile].X + column * R;
    for (int v = 0; v < V; ++v) {
      Lanes cotangent[K];
      for (int k = 0; k < K; ++k) load(cotangent[k], z + k * R + v * kLanes);
      for (int c = 0; c < C; ++c) {
        Lanes value;
        load(value, x + c * R + v * kLanes);
        for (int k = 0; k < K; ++k) acc[k][c] += cotangent[k] * value;
      }
      if constexpr (kOffset) {
        for (int k = 0; k < K; ++k) offset[k] += cotangent[k];
      }
    }
  }
  for (int k = 0; k < K; ++k) {
    for (int c = 0; c < C; ++c) out[k * stride + c] = sum(acc[k][c]);
    if constexpr (kOffset) out[k * stride + C] = sum(offset[k]);
  }
}

// Columns [first, first + count) of K neighbouring slots, and after them the offsets where these are the last columns.
template <int K, int V>
SOFTWOOD_INLINE void product_row(const Place* places, std::int32_t n_places, const Tile* tiles, std::int64_t first,
                                 std::int64_t count, bool last, float* out, std::int64_t stride) {
  constexpr int C = K == 1 ? 8 : 4;
  const std::int64_t tail = last ? std::min<std::int64_t>(count, (count - 1) % C + 1) : 0;  // columns kept for the end
  std::int64_t column = 0;
  for (; column + C <= count - tail; column += C) {
    lane_products<K, C, V, false>(places, n_places, tiles, first + column, out + column, stride);
  }
  if (last && tail == C) {
    lane_products<K, C, V, true>(places, n_places, tiles, first + column, out + column, stride);
    return;
  }
  for (; column + 1 < count; ++column) {
    lane_products<K, 1, V, false>(places, n_places, tiles, first + column, out + column, stride);
  }
  if (column < count && last) lane_products<K, 1, V, true>(places, n_places, tiles, first + column, out + column, stride);
  if (column < count && !last) {
    lane_products<K, 1, V, false>(places, n_places, tiles, first + column, out + column, stride);
  }
}

// The kernels, one clone per instruction set and tile width.
template <int V>
SOFTWOOD_CLONES void fill(const SoftRows& rows, const std::int32_t* batch, std::int64_t count, Tile& tile) {
  fill_columns<V>(rows, batch, count, tile);
  if (rows.codes) {
    fill_classes<V>(rows, batch, count, tile);
  } else {
    fill_statistics<V>(rows, batch, count, tile);
  }
}

template <int V>
SOFTWOOD_CLONES void down(const SoftShape& shape, const float* theta, std::int64_t p, float tolerance, Tile& tile,
                          float* scratch, LeafSink& sink) {
  sweep_tile_down<V, V == 1 ? 8 : 4>(shape, theta, p, tolerance, tile, scratch, sink);
}

template <int V>
SOFTWOOD_CLONES void up(const float* slope, std::int64_t d, Tile& tile, float* scratch) {
  sweep_tile_up<V>(slope, d, tile, scratch);
}

template <int K, int V>
SOFTWOOD_CLONES void products(const Place* places, std::int32_t n_places, const Tile* tiles, std::int64_t first,
                              std::int64_t count, bool last, float* out, std::int64_t stride) {
  product_row<K, V>(places, n_places, tiles, first, count, last, out, stride);
}

}  // namespace softwood
