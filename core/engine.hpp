// The engine: buffers for one batch, and its phases run by a team.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "parallel.hpp"
#include "sweep.hpp"

namespace softwood {

template <int V>
class Engine {
 public:
  static constexpr int R = V * kLanes;
  static constexpr std::int64_t kBlocks = 8;    // sums over a batch are added up in at most so many parts
  static constexpr std::int64_t kColumns = 32;  // columns of one gradient task: a block of X stays in cache
  static constexpr std::int64_t kGroup = 8;     // nodes or leaves of one task

  Engine(const SoftShape& shape, const SoftRows& rows, std::int64_t batch_size, float tolerance, Team& team)
      : shape_(shape), rows_(rows), tolerance_(tolerance), team_(team), tiles_((batch_size + R - 1) / R) {
    const std::int64_t n_tiles = tiles_.size(), m = shape.n_internal;
    const std::int64_t columns = rows.codes ? std::min<std::int64_t>(rows.d, R) : rows.d;
    X_.reserve(n_tiles * rows.p * R);
    s_.reserve(n_tiles * columns * R);
    P_.reserve(n_tiles * m * R);
    scratch_.reserve(team.size() * m * R);
    ints_.reserve(n_tiles * (3 * m + columns));
    for (std::int64_t t = 0; t < n_tiles; ++t) {
      std::int32_t* ints = ints_.get() + t * (3 * m + columns);
      tiles_[t] = {X_.get() + t * rows.p * R, s_.get() + t * columns * R, P_.get() + t * m * R, ints, ints + m,
                   ints + 3 * m,              0,                          0};
    }
    S_.resize(kBlocks * shape.n_leaves * rows.d);
  }

  // Gathers the batch and sweeps it down; notes each row's likeliest leaf if asked.
  void down(const std::int32_t* batch, std::int64_t count, const float* theta, std::int32_t* leaf_of) {
    n_tiles_ = (count + R - 1) / R;
    const std::int64_t sums = shape_.n_leaves * rows_.d;
    team_.run(std::min(kBlocks, n_tiles_), [&](std::size_t block, int member) {
      std::fill(&S_[block * sums], &S_[block * sums] + sums, 0.0f);
      for (std::int64_t t = block * n_tiles_ / n_blocks(); t < static_cast<std::int64_t>(block + 1) * n_tiles_ / n_blocks(); ++t) {
        const std::int32_t* tile_batch = batch + t * R;
        const std::int64_t tile_count = std::min<std::int64_t>(R, count - t * R);
        Lanes best[V] = {};
        IntLanes which[V] = {};
        LeafSink sink{&S_[block * sums], rows_.d, leaf_of ? best : nullptr, which};
        fill<V>(rows_, tile_batch, tile_count, tiles_[t]);
        softwood::down<V>(shape_, theta, rows_.p, tolerance_, tiles_[t], scratch(member), sink);
        for (std::int64_t r = 0; leaf_of && r < tile_count; ++r) leaf_of[tile_batch[r]] = which[r / kLanes][r % kLanes];
      }
    });
    list_places();
  }

  // S (leaves, d) += the expected statistics of the batch; then after_leaf(leaf, its row of S).
  template <class After>
  void sums(double* S, const After& after_leaf) {
    const std::int64_t d = rows_.d, leaves = shape_.n_leaves;
    team_.run((leaves + kGroup - 1) / kGroup, [&](std::size_t task, int) {
      for (std::int64_t leaf = task * kGroup; leaf < std::min<std::int64_t>(leaves, (task + 1) * kGroup); ++leaf) {
        for (std::int64_t block = 0; block < n_blocks(); ++block) {
          const float* part = &S_[(block * leaves + leaf) * d];
          for (std::int64_t c = 0; c < d; ++c) S[leaf * d + c] += part[c];
        }
        after_leaf(leaf, S + leaf * d);
      }
    });
  }

  // Sweeps the costs up with the leaves' slopes (leaves, d).
  void up(const float* slope) {
    team_.run(n_tiles_, [&](std::size_t t, int member) { softwood::up<V>(slope, rows_.d, tiles_[t], scratch(member)); });
  }

  // visit(node, first column, n columns, gradient) for every block of theta's rows (p weights, then the offset).
  template <class Visit>
  void gradient(const Visit& visit) {
    const std::int64_t p = rows_.p, m = shape_.n_internal, K = dense() ? 4 : 1;
    const std::int64_t groups = (m + kGroup - 1) / kGroup, blocks = (p + kColumns - 1) / kColumns;
    team_.run(groups * blocks, [&](std::size_t task, int) {
      const std::int64_t first = task / groups * kColumns, group = task % groups;
      const std::int64_t count = std::min(kColumns, p - first), stop = std::min(m, (group + 1) * kGroup);
      const bool last = first + count == p;
      float part[4 * (kColumns + 1)];
      for (std::int64_t node = group * kGroup; node < stop;) {
        const std::int64_t width = node + K <= stop ? K : 1;
        multiply(width, node, first, count, last, part);
        for (std::int64_t k = 0; k < width; ++k, ++node) {
          visit(node, first, count + (last ? 1 : 0), part + k * (kColumns + 1));
        }
      }
    });
  }

  std::int64_t n_visits() const {
    std::int64_t total = 0;
    for (std::int64_t t = 0; t < n_tiles_; ++t) total += tiles_[t].n_visits;
    return total;
  }

 private:
  bool dense() const { return tolerance_ <= 0; }
  std::int64_t n_blocks() const { return std::min(kBlocks, n_tiles_); }
  float* scratch(int member) const { return scratch_.get() + static_cast<std::int64_t>(member) * shape_.n_internal * R; }

  // In a dense sweep neighbouring nodes hold neighbouring slots in every tile, so four can be multiplied at once.
  void multiply(std::int64_t width, std::int64_t node, std::int64_t first, std::int64_t count, bool last,
                float* out) const {
    const Place* places = places_.data() + start_[node];
    const std::int32_t n_places = start_[node + 1] - start_[node];
    if (width == 4) {
      products<4, V>(places, n_places, tiles_.data(), first, count, last, out, kColumns + 1);
    } else {
      products<1, V>(places, n_places, tiles_.data(), first, count, last, out, kColumns + 1);
    }
  }

  // Lists the visits of each node: tile by tile, so that its sums have a fixed order.
  void list_places() {
    if (dense() && listed_ == n_tiles_) return;
    listed_ = n_tiles_;
    start_.assign(shape_.n_internal + 1, 0);
    for (std::int64_t t = 0; t < n_tiles_; ++t) {
      for (std::int32_t i = 0; i < tiles_[t].n_visits; ++i) ++start_[tiles_[t].node[i] + 1];
    }
    std::partial_sum(start_.begin(), start_.end(), start_.begin());
    places_.resize(start_.back());
    next_.assign(start_.begin(), start_.end() - 1);
    for (std::int32_t t = 0; t < n_tiles_; ++t) {
      for (std::int32_t i = 0; i < tiles_[t].n_visits; ++i) places_[next_[tiles_[t].node[i]]++] = {t, i};
    }
  }

  const SoftShape& shape_;
  const SoftRows& rows_;
  float tolerance_;
  Team& team_;
  std::int64_t n_tiles_ = 0, listed_ = -1;
  std::vector<Tile> tiles_;
  std::vector<float> S_;  // (blocks, leaves, d)
  Buffer<float> X_, s_, P_, scratch_;
  Buffer<std::int32_t> ints_;
  std::vector<std::int32_t> start_, next_;  // (nodes + 1,) where each node's places begin
  std::vector<Place> places_;
};

}  // namespace softwood
