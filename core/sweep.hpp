// Sweeps of a soft tree of linear questions over one batch: everything between theta and the gradient.
//
// A batch is cut into tiles of V * 16 rows, transposed so that a vector register holds one number of 16 rows. Phases:
//   down      per tile   scores (matrix product) -> gates -> reach; visits are listed level by level
//   sums      per leaf   S = reach^T s
//   up        per tile   expected costs from the leaves' slopes; score cotangents
//   gradient  per node   theta_bar = Z_bar^T X
// A visit is a (tile, node) pair. With tolerance > 0 a tile visits a child only if some row of it arrives with more
// than that probability: a lazy sweep. What is cut has reach below the tolerance; its gate's gradient is taken as 0.
// Each phase is a set of independent tasks and every sum has a fixed order, so results do not depend on threads.
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

// Places listed by key (node or leaf): one row of a ragged table per key.
struct Index {
  std::vector<std::int32_t> start;  // (keys + 1,)
  std::vector<Place> places;
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
  float *X, *s;                 // (p, R), (d, R)
  float *P, *G;                 // (visits, R): P then cost A; reach, then reach P Q, then Z_bar
  float* L;                     // (leaf visits, R) reach of leaves
  std::int32_t* node;           // (visits,)
  std::int32_t* child;          // (visits, 2) slot of the child's visit, ~slot of a leaf visit, or kSkipped
  std::int32_t* leaf;           // (leaf visits,)
  std::int32_t n_visits, n_leaf_visits;
};

// Transposes the batch's rows into a tile; rows past the batch's end weigh nothing.
template <int V>
SOFTWOOD_INLINE void fill_tile(const SoftRows& rows, const std::int32_t* batch, std::int64_t count, Tile& tile) {
  constexpr int R = V * kLanes;
  for (int r = 0; r < R; ++r) {
    if (r < count) {
      const float* z = rows.Z + static_cast<std::int64_t>(batch[r]) * rows.p;
      for (std::int64_t j = 0; j < rows.p; ++j) tile.X[j * R + r] = z[j];
    } else {
      for (std::int64_t j = 0; j < rows.p; ++j) tile.X[j * R + r] = 0;
    }
  }
  if (rows.codes) std::fill(tile.s, tile.s + rows.d * R, 0.0f);
  for (int r = 0; r < R; ++r) {
    if (rows.codes) {
      if (r < count) tile.s[rows.codes[batch[r]] * R + r] = rows.s[batch[r]];
      continue;
    }
    for (std::int64_t c = 0; c < rows.d; ++c) tile.s[c * R + r] = r < count ? rows.s[batch[r] * rows.d + c] : 0;
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

// Takes the rows of a tile to one child: a new visit, a leaf, or nothing where nobody arrives.
template <int V>
SOFTWOOD_INLINE std::int32_t enter(std::int32_t child, const Lanes* reach, float tolerance, Tile& tile,
                                   std::int32_t& end) {
  constexpr int R = V * kLanes;
  if (tolerance > 0) {
    bool arrives = false;
    for (int v = 0; v < V; ++v) arrives |= any_above(reach[v], tolerance);
    if (!arrives) return kSkipped;
  }
  const bool is_leaf = child < 0;
  const std::int32_t slot = is_leaf ? tile.n_leaf_visits++ : end++;
  float* to = (is_leaf ? tile.L : tile.G) + static_cast<std::int64_t>(slot) * R;
  for (int v = 0; v < V; ++v) store(reach[v], to + v * kLanes);
  (is_leaf ? tile.leaf : tile.node)[slot] = is_leaf ? ~child : child;
  return is_leaf ? ~slot : slot;
}

template <int V>
SOFTWOOD_INLINE void open_gate(const SoftShape& shape, float tolerance, Tile& tile, std::int32_t slot,
                               std::int32_t& end) {
  constexpr int R = V * kLanes;
  Lanes reach[2][V];
  for (int v = 0; v < V; ++v) {
    float *P = tile.P + slot * R + v * kLanes, *G = tile.G + slot * R + v * kLanes;
    Lanes z, left, right, here;
    load(z, P);
    load(here, G);
    sigmoid(z, left, right);
    reach[0][v] = here * left;
    reach[1][v] = here * right;
    store(right, P);
    store(reach[1][v] * left, G);
  }
  const std::int32_t node = tile.node[slot];
  for (int side = 0; side < 2; ++side) {
    tile.child[2 * slot + side] = enter<V>(shape.child[2 * node + side], reach[side], tolerance, tile, end);
  }
}

// Scores, gates and reach of one tile, level by level.
template <int V, int K>
SOFTWOOD_INLINE void sweep_tile_down(const SoftShape& shape, const float* theta, std::int64_t p, float tolerance,
                                     Tile& tile) {
  constexpr int R = V * kLanes;
  tile.n_leaf_visits = 0;
  tile.node[0] = 0;
  for (int r = 0; r < R; ++r) tile.G[r] = 1;
  std::int32_t begin = 0, end = 1;
  while (begin < end) {
    std::int32_t slot = begin;
    for (; slot + K <= end; slot += K) score_visits<K, V>(theta, p, tile, slot);
    for (; slot < end; ++slot) score_visits<1, V>(theta, p, tile, slot);
    const std::int32_t level_end = end;
    for (slot = begin; slot < level_end; ++slot) open_gate<V>(shape, tolerance, tile, slot, end);
    begin = level_end;
  }
  tile.n_visits = end;
}

// Expected cost of a child: a leaf's slope against the rows' statistics, or what its own visit left in P.
template <int V>
SOFTWOOD_INLINE void cost_of(std::int32_t child, const float* slope, std::int64_t d, const Tile& tile, Lanes* cost) {
  constexpr int R = V * kLanes;
  if (child >= 0) {
    for (int v = 0; v < V; ++v) load(cost[v], tile.P + static_cast<std::int64_t>(child) * R + v * kLanes);
    return;
  }
  const float* a = slope + tile.leaf[~child] * d;
  for (int v = 0; v < V; ++v) cost[v] = Lanes{};
  for (std::int64_t c = 0; c < d; ++c) {
    for (int v = 0; v < V; ++v) {
      Lanes s;
      load(s, tile.s + c * R + v * kLanes);
      cost[v] += a[c] * s;
    }
  }
}

// Costs from the leaves to the root; leaves each visit's Z_bar in G.
template <int V>
SOFTWOOD_INLINE void sweep_tile_up(const float* slope,  // (leaves, d)
                                   std::int64_t d, Tile& tile) {
  constexpr int R = V * kLanes;
  for (std::int32_t slot = tile.n_visits - 1; slot >= 0; --slot) {
    Lanes cost[2][V];
    const std::int32_t left = tile.child[2 * slot], right = tile.child[2 * slot + 1];
    // A branch nobody enters costs what its sibling costs: no difference, no gradient.
    if (left != kSkipped) cost_of<V>(left, slope, d, tile, cost[0]);
    if (right != kSkipped) cost_of<V>(right, slope, d, tile, cost[1]);
    for (int v = 0; v < V; ++v) {
      const Lanes low = left != kSkipped ? cost[0][v] : right != kSkipped ? cost[1][v] : Lanes{};
      const Lanes high = right != kSkipped ? cost[1][v] : low;
      float *P = tile.P + slot * R + v * kLanes, *G = tile.G + slot * R + v * kLanes;
      Lanes probability, derivative;
      load(probability, P);
      load(derivative, G);
      store(derivative * (high - low), G);
      store(low + probability * (high - low), P);
    }
  }
}

// out[k][c] = sum over rows of left[k] right[c], for K neighbouring slots and C neighbouring columns: both the
// statistics of leaves (reach^T s) and the gradient of nodes (Z_bar^T X).
template <int K, int C, int V>
SOFTWOOD_INLINE void lane_products(const Place* places, std::int32_t n_places, const float* const* left,
                                   const float* const* right, std::int64_t column, float* out) {
  constexpr int R = V * kLanes;
  Lanes acc[K][C] = {};
  for (std::int32_t i = 0; i < n_places; ++i) {
    const float* a = left[places[i].tile] + static_cast<std::int64_t>(places[i].slot) * R;
    const float* b = right[places[i].tile] + column * R;
    for (int v = 0; v < V; ++v) {
      Lanes x[K];
      for (int k = 0; k < K; ++k) load(x[k], a + k * R + v * kLanes);
      for (int c = 0; c < C; ++c) {
        Lanes y;
        load(y, b + c * R + v * kLanes);
        for (int k = 0; k < K; ++k) acc[k][c] += x[k] * y;
      }
    }
  }
  for (int k = 0; k < K; ++k) {
    for (int c = 0; c < C; ++c) out[k * C + c] = sum(acc[k][c]);
  }
}

// sum over rows of left[k] for K neighbouring slots.
template <int K, int V>
SOFTWOOD_INLINE void lane_sums(const Place* places, std::int32_t n_places, const float* const* left, float* out) {
  constexpr int R = V * kLanes;
  Lanes acc[K] = {};
  for (std::int32_t i = 0; i < n_places; ++i) {
    const float* a = left[places[i].tile] + static_cast<std::int64_t>(places[i].slot) * R;
    for (int k = 0; k < K; ++k) {
      for (int v = 0; v < V; ++v) {
        Lanes x;
        load(x, a + k * R + v * kLanes);
        acc[k] += x;
      }
    }
  }
  for (int k = 0; k < K; ++k) out[k] = sum(acc[k]);
}

// All columns of K neighbouring slots: out (K, stride).
template <int K, int V>
SOFTWOOD_INLINE void product_row(const Place* places, std::int32_t n_places, const float* const* left,
                                 const float* const* right, std::int64_t n_columns, float* out, std::int64_t stride) {
  constexpr int C = K == 1 ? 8 : 4;
  std::int64_t column = 0;
  float part[K * C];
  for (; column + C <= n_columns; column += C) {
    lane_products<K, C, V>(places, n_places, left, right, column, part);
    for (int k = 0; k < K; ++k) std::copy(part + k * C, part + (k + 1) * C, out + k * stride + column);
  }
  for (; column < n_columns; ++column) {
    lane_products<K, 1, V>(places, n_places, left, right, column, part);
    for (int k = 0; k < K; ++k) out[k * stride + column] = part[k];
  }
}

// The kernels, one clone per instruction set and tile width.
template <int V>
SOFTWOOD_CLONES void fill(const SoftRows& rows, const std::int32_t* batch, std::int64_t count, Tile& tile) {
  fill_tile<V>(rows, batch, count, tile);
}

template <int V>
SOFTWOOD_CLONES void down(const SoftShape& shape, const float* theta, std::int64_t p, float tolerance, Tile& tile) {
  sweep_tile_down<V, V == 1 ? 8 : 4>(shape, theta, p, tolerance, tile);
}

template <int V>
SOFTWOOD_CLONES void up(const float* slope, std::int64_t d, Tile& tile) {
  sweep_tile_up<V>(slope, d, tile);
}

template <int K, int V>
SOFTWOOD_CLONES void products(const Place* places, std::int32_t n_places, const float* const* left,
                              const float* const* right, std::int64_t n_columns, float* out, std::int64_t stride) {
  product_row<K, V>(places, n_places, left, right, n_columns, out, stride);
}

template <int K, int V>
SOFTWOOD_CLONES void sums(const Place* places, std::int32_t n_places, const float* const* left, float* out) {
  lane_sums<K, V>(places, n_places, left, out);
}

}  // namespace softwood
