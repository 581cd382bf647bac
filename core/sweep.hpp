// Sweeps of a soft tree of linear questions over one batch: everything between theta and the gradient.
//
// A batch is cut into tiles of V * 16 rows, transposed so that a vector register holds one number of 16 rows. Phases:
//   down      per tile   scores (matrix product) -> gates -> reach -> sums of the leaves, S = reach^T s
//   up        per tile   expected costs from the leaves' slopes; score cotangents; theta_bar += Z_bar^T X
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
  const float* Z;             // (n, p)
  const std::int32_t* codes;  // (n,) or null
  const float* s;             // (n, d), or (n,) weights with codes
  std::int64_t n, p, d;
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

// Where one tile's numbers are, of its visits and then of the leaves it enters. `link` says where the cost of a child
// will stand: a visit's slot, a leaf's place, and for a child that nobody enters its sibling's, so that it makes no
// difference and no gradient.
struct Tile {
  float *X, *s;              // (p, R), (n_columns, R)
  float *X_rows, *s_rows;    // (R, padded p), (R, padded d) the same row by row, for products that run along columns
  float* P;                  // (visits, R) gates; after the sweep up, Z_bar
  std::int32_t* node;        // (visits,)
  std::int32_t* parent;      // (visits,) 2 * slot of the parent + side
  std::int32_t* link;        // (visits, 2)
  std::int32_t* leaf;        // (n_leaves,)
  std::int32_t* column;      // (n_columns,) which statistics s holds: of class counts only the classes present
  std::int32_t first_place;  // what stands where in scratch: visits, zeros just before the leaves, leaves
  std::int32_t n_visits, n_leaves, n_columns;
};

// Where a tile's leaves go: sums (leaves, padded d), and each row's likeliest leaf so far if wanted. Leaves wait until
// there are a few of them, whose sums are then taken together.
struct LeafSink {
  static constexpr int kWaiting = 8;

  float* S;
  std::uint8_t* touched;  // (leaves,) whether a row of S holds anything yet
  std::int64_t d;
  Lanes* best;      // (V,) or null
  IntLanes* which;  // (V,)
  float* reach;     // (kWaiting + 1, R)
  int n_waiting = 0;
};

// Columns in whole vectors. The numbers past the last column are 0 from the start and stay so.
constexpr std::int64_t padded(std::int64_t p) { return (p + kLanes - 1) / kLanes * kLanes; }

// Whether leaves are summed column by column rather than as a product with the rows' statistics: where the rows of a
// tile have few statistics between them, as rows of one class do.
template <int V>
constexpr bool sums_by_columns(std::int64_t n_columns, std::int64_t d) {
  return n_columns * (V + 8) * kLanes < V * kLanes * padded(d);
}

template <int V>
SOFTWOOD_INLINE void fill_columns(const SoftRows& rows, const std::int32_t* batch, std::int64_t count, Tile& tile) {
  constexpr int R = V * kLanes;
  constexpr int kAhead = 8;                           // rows: a batch's rows lie anywhere, far beyond the caches
  static constexpr float kNothing[4] = {0, 0, 0, 0};  // rows past the batch's end: no matter, they weigh nothing
  for (int r = 0; r < R; r += 4) {
    const float* z[4];
    for (int i = 0; i < 4; ++i) z[i] = r + i < count ? rows.Z + batch[r + i] * rows.p : nullptr;
    for (int i = kAhead; i < kAhead + 4 && r + i < count; ++i) prefetch(rows.Z + batch[r + i] * rows.p, rows.p);
    std::int64_t j = 0;
    for (; j + 4 <= rows.p; j += 4) {
      const float* at[4];
      for (int i = 0; i < 4; ++i) at[i] = z[i] ? z[i] + j : kNothing;
      transpose(at, tile.X + j * R + r, R);
    }
    for (; j < rows.p; ++j) {
      for (int i = 0; i < 4; ++i) tile.X[j * R + r + i] = z[i] ? z[i][j] : 0.0f;
    }
    for (int i = 0; i < 4; ++i) {
      float* row = tile.X_rows + (r + i) * padded(rows.p);
      if (z[i]) {
        std::copy_n(z[i], rows.p, row);
      } else {
        std::fill_n(row, rows.p, 0.0f);
      }
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
  if (sums_by_columns<V>(tile.n_columns, rows.d)) return;
  const std::int64_t width = padded(rows.d);
  std::fill_n(tile.s_rows, R * width, 0.0f);
  for (int r = 0; r < R && r < count; ++r) tile.s_rows[r * width + rows.codes[batch[r]]] = rows.s[batch[r]];
}

template <int V>
SOFTWOOD_INLINE void fill_statistics(const SoftRows& rows, const std::int32_t* batch, std::int64_t count, Tile& tile) {
  constexpr int R = V * kLanes;
  tile.n_columns = static_cast<std::int32_t>(rows.d);
  const bool by_columns = sums_by_columns<V>(rows.d, rows.d);
  for (std::int64_t c = 0; c < rows.d; ++c) {
    tile.column[c] = static_cast<std::int32_t>(c);
    for (int r = 0; r < R; ++r) {
      const float value = r < count ? rows.s[batch[r] * rows.d + c] : 0.0f;
      tile.s[c * R + r] = value;
      if (!by_columns) tile.s_rows[r * padded(rows.d) + c] = value;
    }
  }
}

// Scores and gates of K visits side by side: sums in registers.
template <int K, int V>
SOFTWOOD_INLINE void gate_visits(const float* theta,  // (n_internal, p + 1)
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
    for (int v = 0; v < V; ++v) store(sigmoid(z[k][v]), tile.P + (slot + k) * R + v * kLanes);
  }
}

// out[k][c] += sum over rows of a[k][row] b[row][c], for K rows of a and C neighbouring vectors of columns. Rows of out
// that hold nothing yet are written. A sum waits for the one before: where sums are few, rows take turns at several.
template <int K, int C, int V>
SOFTWOOD_INLINE void add_products(const float* a,  // (K, R)
                                  const float* b,  // (R, n_columns)
                                  std::int64_t n_columns, float* const* out, const std::uint8_t* const* holds) {
  constexpr int R = V * kLanes, kTurns = K * C >= 8 ? 1 : K * C >= 4 ? 2 : 4;
  Lanes acc[kTurns][K][C] = {};
  for (int r = 0; r < R; r += kTurns) {
    for (int turn = 0; turn < kTurns; ++turn) {
      Lanes x[C];
      for (int c = 0; c < C; ++c) load(x[c], b + (r + turn) * n_columns + c * kLanes);
      for (int k = 0; k < K; ++k) {
        for (int c = 0; c < C; ++c) acc[turn][k][c] += a[k * R + r + turn] * x[c];
      }
    }
  }
  for (int k = 0; k < K; ++k) {
    for (int c = 0; c < C; ++c) {
      Lanes total = {};
      if (!holds || *holds[k]) load(total, out[k] + c * kLanes);
      for (int turn = 0; turn < kTurns; ++turn) total += acc[turn][k][c];
      store(total, out[k] + c * kLanes);
    }
  }
}

// What reaches one leaf, against the statistics that the tile's rows have.
template <int V>
SOFTWOOD_INLINE void add_leaf(const Tile& tile, const float* reach, float* S) {
  constexpr int R = V * kLanes;
  for (std::int32_t c = 0; c < tile.n_columns; ++c) {
    Lanes total = {};
    for (int v = 0; v < V; ++v) {
      Lanes s, here;
      load(s, tile.s + c * R + v * kLanes);
      load(here, reach + v * kLanes);
      total += here * s;
    }
    S[tile.column[c]] += sum(total);
  }
}

// Adds what reaches the waiting leaves to their sums.
template <int V>
SOFTWOOD_INLINE void empty_leaves(const Tile& tile, LeafSink& sink) {
  constexpr int R = V * kLanes, K = LeafSink::kWaiting;
  const std::int64_t width = padded(sink.d);
  const std::int32_t* leaf = tile.leaf + tile.n_leaves - sink.n_waiting;
  for (int k = 0; k < sink.n_waiting; ++k) {
    if (!sink.touched[leaf[k]]) std::fill_n(sink.S + leaf[k] * width, width, 0.0f);
    sink.touched[leaf[k]] = 1;
  }
  if (sums_by_columns<V>(tile.n_columns, sink.d) || sink.n_waiting < K) {
    for (int k = 0; k < sink.n_waiting; ++k) add_leaf<V>(tile, sink.reach + k * R, sink.S + leaf[k] * width);
  } else {
    for (std::int64_t first = 0; first < width; first += kLanes) {
      float* out[K];
      for (int k = 0; k < K; ++k) out[k] = sink.S + leaf[k] * width + first;
      add_products<K, 1, V>(sink.reach, tile.s_rows + first, width, out, nullptr);
    }
  }
  for (int k = 0; sink.best && k < sink.n_waiting; ++k) {
    for (int v = 0; v < V; ++v) {
      Lanes reach;
      load(reach, sink.reach + k * R + v * kLanes);
      const IntLanes better = reach > sink.best[v];
      sink.which[v] = better ? IntLanes{} + leaf[k] : sink.which[v];
      sink.best[v] = better ? reach : sink.best[v];
    }
  }
  sink.n_waiting = 0;
}

struct Entry {
  std::int32_t place;
  std::int32_t arrives;  // 0 or 1
};

// Takes the rows of a tile to one child: a new visit or a leaf. Without a branch on who arrives, which no processor
// could predict: what nobody enters is written over by what comes next.
template <int V>
SOFTWOOD_INLINE Entry enter(std::int32_t child, const Lanes* reach, float tolerance, std::int32_t parent, Tile& tile,
                            float* scratch, LeafSink& sink) {
  constexpr int R = V * kLanes;
  std::int32_t arrives = tolerance <= 0;
  if (tolerance > 0) {
    for (int v = 0; v < V; ++v) arrives |= any_above(reach[v], tolerance);
  }
  if (child < 0) {
    const std::int32_t place = tile.first_place + tile.n_leaves;
    for (int v = 0; v < V; ++v) store(reach[v], sink.reach + sink.n_waiting * R + v * kLanes);
    tile.leaf[tile.n_leaves] = ~child;
    tile.n_leaves += arrives;
    sink.n_waiting += arrives;
    if (sink.n_waiting == LeafSink::kWaiting) empty_leaves<V>(tile, sink);
    return {place, arrives};
  }
  const std::int32_t slot = tile.n_visits;
  for (int v = 0; v < V; ++v) store(reach[v], scratch + static_cast<std::int64_t>(slot) * R + v * kLanes);
  tile.node[slot] = child;
  tile.parent[slot] = parent;
  tile.n_visits += arrives;
  return {slot, arrives};
}

// The first of two where it holds, else the second; by bits, because a compiler would branch.
SOFTWOOD_INLINE std::int32_t either(std::int32_t holds, std::int32_t a, std::int32_t b) {
  return (a & -holds) | (b & (holds - 1));
}

// Both children of a visit whose gates are known.
template <int V>
SOFTWOOD_INLINE void enter_children(const SoftShape& shape, float tolerance, Tile& tile, float* scratch,
                                    std::int32_t slot, LeafSink& sink) {
  constexpr int R = V * kLanes;
  Lanes left[V], right[V];
  for (int v = 0; v < V; ++v) {
    Lanes P, here;
    load(P, tile.P + static_cast<std::int64_t>(slot) * R + v * kLanes);
    load(here, scratch + static_cast<std::int64_t>(slot) * R + v * kLanes);
    right[v] = here * P;
    left[v] = here - right[v];
  }
  const std::int32_t* child = &shape.child[2 * tile.node[slot]];
  const Entry low = enter<V>(child[0], left, tolerance, 2 * slot, tile, scratch, sink);
  const Entry high = enter<V>(child[1], right, tolerance, 2 * slot + 1, tile, scratch, sink);
  const std::int32_t nothing = tile.first_place - 1;
  tile.link[2 * slot] = either(low.arrives, low.place, either(high.arrives, high.place, nothing));
  tile.link[2 * slot + 1] = either(high.arrives, high.place, either(low.arrives, low.place, nothing));
}

// Scores, gates and reach of one tile, level by level, down to the leaves' sums.
template <int V, int K>
SOFTWOOD_INLINE void sweep_tile_down(const SoftShape& shape, const float* theta, std::int64_t p, float tolerance,
                                     Tile& tile, float* scratch, LeafSink& sink) {
  constexpr int R = V * kLanes;
  tile.node[0] = 0;
  tile.n_visits = 1;
  tile.n_leaves = 0;
  for (int r = 0; r < R; ++r) scratch[r] = 1;
  for (std::int32_t begin = 0; begin < tile.n_visits;) {
    const std::int32_t end = tile.n_visits;
    std::int32_t slot = begin;
    for (; slot + K <= end; slot += K) gate_visits<K, V>(theta, p, tile, slot);
    for (; slot + 2 <= end; slot += 2) gate_visits<2, V>(theta, p, tile, slot);
    if (slot < end) gate_visits<1, V>(theta, p, tile, slot);
    for (slot = begin; slot < end; ++slot) enter_children<V>(shape, tolerance, tile, scratch, slot, sink);
    begin = end;
  }
  empty_leaves<V>(tile, sink);
}

// reach of every visit again, from the gates.
template <int V>
SOFTWOOD_INLINE void reach_again(const Tile& tile, float* scratch) {
  constexpr int R = V * kLanes;
  for (int r = 0; r < R; ++r) scratch[r] = 1;
  for (std::int32_t slot = 1; slot < tile.n_visits; ++slot) {
    const std::int64_t parent = tile.parent[slot] >> 1;
    const float side = static_cast<float>(tile.parent[slot] & 1);
    for (int v = 0; v < V; ++v) {
      Lanes P, above;
      load(P, tile.P + parent * R + v * kLanes);
      load(above, scratch + parent * R + v * kLanes);
      const Lanes right = above * P, left = above - right;
      store(left + side * (right - left), scratch + static_cast<std::int64_t>(slot) * R + v * kLanes);
    }
  }
}

// Costs of K neighbouring leaves of a tile: their slopes against the rows' statistics.
template <int K, int V>
SOFTWOOD_INLINE void cost_leaves(const float* slope,  // (leaves, d)
                                 std::int64_t d, const Tile& tile, std::int32_t first, float* scratch) {
  constexpr int R = V * kLanes;
  Lanes cost[K][V] = {};
  for (std::int32_t c = 0; c < tile.n_columns; ++c) {
    const float* of_column = slope + tile.column[c];
    for (int v = 0; v < V; ++v) {
      Lanes s;
      load(s, tile.s + c * R + v * kLanes);
      for (int k = 0; k < K; ++k) cost[k][v] += of_column[tile.leaf[first + k] * d] * s;
    }
  }
  float* out = scratch + static_cast<std::int64_t>(tile.first_place + first) * R;
  for (int k = 0; k < K; ++k) {
    for (int v = 0; v < V; ++v) store(cost[k][v], out + k * R + v * kLanes);
  }
}

// Costs from the leaves to the root; leaves each visit's Z_bar in P.
template <int V>
SOFTWOOD_INLINE void sweep_tile_up(const float* slope,  // (leaves, d)
                                   std::int64_t d, Tile& tile, float* scratch) {
  constexpr int R = V * kLanes, K = 16 / V;
  reach_again<V>(tile, scratch);
  std::fill_n(scratch + static_cast<std::int64_t>(tile.first_place - 1) * R, R, 0.0f);
  std::int32_t leaf = 0;
  for (; leaf + K <= tile.n_leaves; leaf += K) cost_leaves<K, V>(slope, d, tile, leaf, scratch);
  for (; leaf < tile.n_leaves; ++leaf) cost_leaves<1, V>(slope, d, tile, leaf, scratch);
  for (std::int32_t slot = tile.n_visits - 1; slot >= 0; --slot) {
    const float* low = scratch + static_cast<std::int64_t>(tile.link[2 * slot]) * R;
    const float* high = scratch + static_cast<std::int64_t>(tile.link[2 * slot + 1]) * R;
    for (int v = 0; v < V; ++v) {
      float* gate = tile.P + static_cast<std::int64_t>(slot) * R + v * kLanes;
      float* here = scratch + static_cast<std::int64_t>(slot) * R + v * kLanes;
      Lanes P, reach, left, right;
      load(left, low + v * kLanes);
      load(right, high + v * kLanes);
      load(P, gate);
      load(reach, here);
      const Lanes step = P * (right - left);
      store(reach * (step - P * step), gate);
      store(left + step, here);
    }
  }
}

// Where the gradient of a block of rows is added up: one row per node, its weights and then a vector of offset sums.
struct GradientSink {
  float* sums;            // (n_internal, stride)
  std::uint8_t* touched;  // (n_internal,) whether a row holds anything yet
  std::int64_t stride;    // padded(p) + kLanes
};

// Adds Z_bar^T X of K neighbouring slots and C neighbouring vectors of columns.
template <int K, int C, int V>
SOFTWOOD_INLINE void add_slots(const Tile& tile, std::int32_t slot, std::int64_t n_columns, std::int64_t first,
                               GradientSink& sink) {
  float* out[K];
  const std::uint8_t* touched[K];
  for (int k = 0; k < K; ++k) {
    out[k] = sink.sums + tile.node[slot + k] * sink.stride + first;
    touched[k] = sink.touched + tile.node[slot + k];
  }
  const float* Z_bar = tile.P + static_cast<std::int64_t>(slot) * V * kLanes;
  add_products<K, C, V>(Z_bar, tile.X_rows + first, n_columns, out, touched);
}

template <int K, int C, int V>
SOFTWOOD_INLINE void add_columns(const Tile& tile, std::int64_t n_columns, std::int64_t first, GradientSink& sink) {
  std::int32_t slot = 0;
  for (; slot + K <= tile.n_visits; slot += K) add_slots<K, C, V>(tile, slot, n_columns, first, sink);
  for (; slot + 4 <= tile.n_visits; slot += 4) add_slots<4, C, V>(tile, slot, n_columns, first, sink);
  for (; slot + 2 <= tile.n_visits; slot += 2) add_slots<2, C, V>(tile, slot, n_columns, first, sink);
  if (slot < tile.n_visits) add_slots<1, C, V>(tile, slot, n_columns, first, sink);
}

// Adds a tile's part of the gradient. The offsets come last: they mark their rows as touched.
template <int V>
SOFTWOOD_INLINE void add_gradient(const Tile& tile, std::int64_t p, GradientSink& sink) {
  constexpr int R = V * kLanes;
  const std::int64_t n_columns = padded(p);
  std::int64_t first = 0;
  for (; first + 4 * kLanes <= n_columns; first += 4 * kLanes) add_columns<6, 4, V>(tile, n_columns, first, sink);
  const std::int64_t rest = (n_columns - first) / kLanes;
  if (rest == 3) add_columns<6, 3, V>(tile, n_columns, first, sink);
  if (rest == 2) add_columns<8, 2, V>(tile, n_columns, first, sink);
  if (rest == 1) add_columns<8, 1, V>(tile, n_columns, first, sink);
  for (std::int32_t slot = 0; slot < tile.n_visits; ++slot) {
    const std::int32_t node = tile.node[slot];
    float* to = sink.sums + node * sink.stride + n_columns;
    Lanes total = {};
    if (sink.touched[node]) load(total, to);
    for (int v = 0; v < V; ++v) {
      Lanes z;
      load(z, tile.P + static_cast<std::int64_t>(slot) * R + v * kLanes);
      total += z;
    }
    store(total, to);
    sink.touched[node] = 1;
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
SOFTWOOD_CLONES void up(const float* slope, std::int64_t d, std::int64_t p, Tile& tile, float* scratch,
                        GradientSink& sink) {
  sweep_tile_up<V>(slope, d, tile, scratch);
  add_gradient<V>(tile, p, sink);
}

// One node's gradient (p + 1): the sums of all blocks that touched it, gathered in the first of them.
SOFTWOOD_CLONES inline float* add_up(const GradientSink* blocks, std::int64_t n_blocks, std::int64_t node,
                                     std::int64_t p, float* nothing) {
  float* total = nullptr;
  for (std::int64_t block = 0; block < n_blocks; ++block) {
    if (!blocks[block].touched[node]) continue;
    float* part = blocks[block].sums + node * blocks[block].stride;
    for (std::int64_t j = 0; total && j < blocks[block].stride; j += kLanes) {
      Lanes a, b;
      load(a, total + j);
      load(b, part + j);
      store(a + b, total + j);
    }
    if (!total) total = part;
  }
  if (!total) return nothing;
  Lanes offset;
  load(offset, total + padded(p));
  total[p] = sum(offset);
  return total;
}

}  // namespace softwood
