// The engine: buffers for one batch, and its four phases run by a team.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "parallel.hpp"
#include "slope.hpp"
#include "sweep.hpp"

namespace softwood {

template <int V>
class Engine {
 public:
  static constexpr int R = V * kLanes;
  static constexpr std::int64_t kColumns = 32;  // columns of one gradient task: a block of X stays in cache

  Engine(const SoftShape& shape, const SoftRows& rows, std::int64_t batch_size, float tolerance, Team& team)
      : shape_(shape), rows_(rows), tolerance_(tolerance), team_(team) {
    const std::int64_t n_tiles = (batch_size + R - 1) / R, m = shape.n_internal, leaves = shape.n_leaves;
    X_.reserve(n_tiles * rows.p * R + kLanes);
    s_.reserve(n_tiles * rows.d * R);
    P_.reserve(n_tiles * m * R);
    G_.reserve(n_tiles * m * R);
    L_.reserve(n_tiles * leaves * R);
    node_.reserve(n_tiles * m);
    child_.reserve(n_tiles * m * 2);
    leaf_.reserve(n_tiles * leaves);
    tiles_.resize(n_tiles);
    for (std::int64_t t = 0; t < n_tiles; ++t) {
      tiles_[t] = {X_.get() + t * rows.p * R, s_.get() + t * rows.d * R, P_.get() + t * m * R, G_.get() + t * m * R,
                   L_.get() + t * leaves * R, node_.get() + t * m,       child_.get() + t * m * 2,
                   leaf_.get() + t * leaves,  0,                         0};
      x_of_.push_back(tiles_[t].X);
      s_of_.push_back(tiles_[t].s);
      g_of_.push_back(tiles_[t].G);
      l_of_.push_back(tiles_[t].L);
    }
  }

  // Gathers the batch and sweeps it down.
  void down(const std::int32_t* batch, std::int64_t count, const float* theta) {
    n_tiles_ = (count + R - 1) / R;
    team_.run(n_tiles_, [&](std::size_t t, int) {
      fill<V>(rows_, batch + t * R, std::min<std::int64_t>(R, count - t * R), tiles_[t]);
      softwood::down<V>(shape_, theta, rows_.p, tolerance_, tiles_[t]);
    });
    list_places();
  }

  // S (leaves, d) += the expected statistics of the batch; then after_leaf(leaf, its row of S).
  template <class After>
  void sums(double* S, const After& after_leaf) {
    const std::int64_t d = rows_.d, leaves = shape_.n_leaves, K = dense() ? 4 : 1;
    team_.run((leaves + kGroup - 1) / kGroup, [&](std::size_t task, int) {
      std::vector<float> part(4 * d);
      const std::int64_t stop = std::min<std::int64_t>(leaves, (task + 1) * kGroup);
      for (std::int64_t leaf = task * kGroup; leaf < stop;) {
        const std::int64_t width = leaf + K <= stop ? K : 1;
        multiply(width, by_leaf_, leaf, l_of_, s_of_, 0, d, part.data(), d);
        for (std::int64_t k = 0; k < width; ++k, ++leaf) {
          for (std::int64_t c = 0; c < d; ++c) S[leaf * d + c] += part[k * d + c];
          after_leaf(leaf, S + leaf * d);
        }
      }
    });
  }

  // Sweeps the costs up with the leaves' slopes (leaves, d).
  void up(const float* slope) {
    team_.run(n_tiles_, [&](std::size_t t, int) { softwood::up<V>(slope, rows_.d, tiles_[t]); });
  }

  // visit(node, first column, n columns, gradient) for every block of theta's rows (p weights, then the offset).
  template <class Visit>
  void gradient(const Visit& visit) {
    const std::int64_t p = rows_.p, m = shape_.n_internal, K = dense() ? 4 : 1;
    const std::int64_t groups = (m + kGroup - 1) / kGroup, blocks = (p + kColumns - 1) / kColumns;
    team_.run(groups * blocks, [&](std::size_t task, int) {
      const std::int64_t first = task / groups * kColumns, group = task % groups;
      const std::int64_t n_columns = std::min(kColumns, p - first), stop = std::min(m, (group + 1) * kGroup);
      float part[4 * (kColumns + 1)];
      for (std::int64_t node = group * kGroup; node < stop;) {
        const std::int64_t width = node + K <= stop ? K : 1;
        multiply(width, by_node_, node, g_of_, x_of_, first, n_columns, part, kColumns + 1);
        const bool last = first + n_columns == p;
        if (last) add_up(width, by_node_, node, g_of_, part + n_columns, kColumns + 1);
        for (std::int64_t k = 0; k < width; ++k, ++node) {
          visit(node, first, n_columns + (last ? 1 : 0), part + k * (kColumns + 1));
        }
      }
    });
  }

  std::int64_t n_visits() const {
    std::int64_t total = 0;
    for (std::int64_t t = 0; t < n_tiles_; ++t) total += tiles_[t].n_visits;
    return total;
  }

  // The likeliest leaf of each row of the batch: rows that travel together can then share a tile.
  void likeliest(const std::int32_t* batch, std::int64_t count, std::int32_t* leaf_of) const {
    team_.run(n_tiles_, [&](std::size_t t, int) {
      const Tile& tile = tiles_[t];
      float best[R] = {};
      std::int32_t which[R] = {};
      for (std::int32_t slot = 0; slot < tile.n_leaf_visits; ++slot) {
        const float* reach = tile.L + static_cast<std::int64_t>(slot) * R;
        const std::int32_t leaf = tile.leaf[slot];
        for (int r = 0; r < R; ++r) {
          which[r] = reach[r] > best[r] ? leaf : which[r];
          best[r] = reach[r] > best[r] ? reach[r] : best[r];
        }
      }
      for (int r = 0; r < R && static_cast<std::int64_t>(t * R + r) < count; ++r) leaf_of[batch[t * R + r]] = which[r];
    });
  }

 private:
  static constexpr std::int64_t kGroup = 8;  // nodes of one task

  bool dense() const { return tolerance_ <= 0; }

  // In a dense sweep neighbouring nodes hold neighbouring slots in every tile, so four can be multiplied at once.
  void multiply(std::int64_t width, const Index& index, std::int64_t key, const std::vector<const float*>& left,
                const std::vector<const float*>& right, std::int64_t first, std::int64_t n_columns, float* out,
                std::int64_t stride) const {
    const Place* places = index.places.data() + index.start[key];
    const std::int32_t count = index.start[key + 1] - index.start[key];
    std::vector<const float*> shifted;
    const float* const* columns = right.data();
    if (first > 0) {
      for (const float* x : right) shifted.push_back(x + first * R);
      columns = shifted.data();
    }
    if (width == 4) {
      products<4, V>(places, count, left.data(), columns, n_columns, out, stride);
    } else {
      products<1, V>(places, count, left.data(), columns, n_columns, out, stride);
    }
  }

  void add_up(std::int64_t width, const Index& index, std::int64_t key, const std::vector<const float*>& left,
              float* out, std::int64_t stride) const {
    const Place* places = index.places.data() + index.start[key];
    const std::int32_t count = index.start[key + 1] - index.start[key];
    float part[4];
    if (width == 4) {
      softwood::sums<4, V>(places, count, left.data(), part);
    } else {
      softwood::sums<1, V>(places, count, left.data(), part);
    }
    for (std::int64_t k = 0; k < width; ++k) out[k * stride] = part[k];
  }

  void list_places() {
    if (dense() && listed_ == n_tiles_) return;
    list(by_node_, shape_.n_internal, [](const Tile& t) { return t.n_visits; }, [](const Tile& t) { return t.node; });
    list(by_leaf_, shape_.n_leaves, [](const Tile& t) { return t.n_leaf_visits; },
         [](const Tile& t) { return t.leaf; });
    listed_ = n_tiles_;
  }

  template <class Count, class Keys>
  void list(Index& index, std::int64_t n_keys, const Count& count, const Keys& keys) {
    index.start.assign(n_keys + 1, 0);
    for (std::int64_t t = 0; t < n_tiles_; ++t) {
      for (std::int32_t i = 0; i < count(tiles_[t]); ++i) ++index.start[keys(tiles_[t])[i] + 1];
    }
    std::partial_sum(index.start.begin(), index.start.end(), index.start.begin());
    index.places.resize(index.start.back());
    std::vector<std::int32_t> next(index.start.begin(), index.start.end() - 1);
    for (std::int32_t t = 0; t < n_tiles_; ++t) {
      for (std::int32_t i = 0; i < count(tiles_[t]); ++i) index.places[next[keys(tiles_[t])[i]]++] = {t, i};
    }
  }

  const SoftShape& shape_;
  const SoftRows& rows_;
  float tolerance_;
  Team& team_;
  std::int64_t n_tiles_ = 0, listed_ = -1;
  std::vector<Tile> tiles_;
  std::vector<const float*> x_of_, s_of_, g_of_, l_of_;
  Buffer<float> X_, s_, P_, G_, L_;
  Buffer<std::int32_t> node_, child_, leaf_;
  Index by_node_, by_leaf_;
};

}  // namespace softwood
