// The engine: buffers for one batch, and its phases run by a team.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "sweep.hpp"

namespace softwood {

template <int V>
class Engine {
 public:
  static constexpr int R = V * kLanes;
  // Sums over a batch are added up in at most so many parts: fewer where there are many leaves to add up.
  static constexpr std::int64_t kBlocks = V == 1 ? 4 : 8;
  static constexpr std::int64_t kGroup = 8;  // nodes or leaves of one task

  Engine(const SoftShape& shape, const SoftRows& rows, std::int64_t batch_size, float tolerance, Team& team)
      : shape_(shape), rows_(rows), tolerance_(tolerance), team_(team), tiles_((batch_size + R - 1) / R) {
    const std::int64_t n_tiles = tiles_.size(), m = shape.n_internal;
    const std::int64_t columns = rows.codes ? std::min<std::int64_t>(rows.d, R) : rows.d;
    const std::int64_t width = padded(rows.p), s_width = padded(rows.d);
    X_.reserve(n_tiles * rows.p * R);
    by_row_.reserve(n_tiles * (width + s_width) * R);
    std::fill_n(by_row_.get(), n_tiles * (width + s_width) * R, 0.0f);
    s_.reserve(n_tiles * columns * R);
    P_.reserve(n_tiles * m * R);
    scratch_.reserve(team.size() * scratch_size());
    const std::int64_t leaves = shape.n_leaves, n_ints = 4 * (m + 1) + leaves + 1 + columns;
    ints_.reserve(n_tiles * n_ints);
    for (std::int64_t t = 0; t < n_tiles; ++t) {
      std::int32_t* ints = ints_.get() + t * n_ints;
      float* by_row = by_row_.get() + t * (width + s_width) * R;
      tiles_[t] = {X_.get() + t * rows.p * R,
                   s_.get() + t * columns * R,
                   by_row,
                   by_row + width * R,
                   P_.get() + t * m * R,
                   ints,
                   ints + (m + 1),
                   ints + 2 * (m + 1),
                   ints + 4 * (m + 1),
                   ints + 4 * (m + 1) + leaves + 1,
                   static_cast<std::int32_t>(m + 2),
                   0,
                   0,
                   0};
    }
    leaf_touched_.resize(kBlocks * leaves);
    S_.reserve(kBlocks * shape.n_leaves * s_width);
    const std::int64_t stride = width + kLanes;
    sums_.reserve(kBlocks * m * stride);
    touched_.resize(kBlocks * m);
    nothing_.resize(rows.p + 1);
    for (std::int64_t block = 0; block < kBlocks; ++block) {
      sinks_[block] = {sums_.get() + block * m * stride, touched_.data() + block * m, stride};
    }
  }

  // Gathers the batch and sweeps it down; notes each row's likeliest leaf if asked.
  void down(const std::int32_t* batch, std::int64_t count, const float* theta, std::int32_t* leaf_of) {
    n_tiles_ = (count + R - 1) / R;
    const std::int64_t sums = shape_.n_leaves * padded(rows_.d);
    team_.run(n_blocks(), [&](std::size_t block, int member) {
      float* S = S_.get() + block * sums;
      std::uint8_t* touched = leaf_touched_.data() + block * shape_.n_leaves;
      std::fill_n(touched, shape_.n_leaves, 0);
      owner_[block].store(member);
      for (std::int64_t t = first_tile(block); t < first_tile(block + 1); ++t) {
        const std::int32_t* tile_batch = batch + t * R;
        const std::int64_t tile_count = std::min<std::int64_t>(R, count - t * R);
        Lanes best[V] = {};
        IntLanes which[V] = {};
        LeafSink sink{S, touched, rows_.d, leaf_of ? best : nullptr, which, waiting(member)};
        fill<V>(rows_, tile_batch, tile_count, tiles_[t]);
        softwood::down<V>(shape_, theta, rows_.p, tolerance_, tiles_[t], scratch(member), sink);
        for (std::int64_t r = 0; leaf_of && r < tile_count; ++r) leaf_of[tile_batch[r]] = which[r / kLanes][r % kLanes];
      }
    });
  }

  // S (leaves, d) += the expected statistics of the batch; then after_leaf(leaf, its row of S).
  template <class After>
  void sums(double* S, const After& after_leaf) {
    const std::int64_t d = rows_.d, leaves = shape_.n_leaves;
    team_.run((leaves + kGroup - 1) / kGroup, [&](std::size_t task, int) {
      for (std::int64_t leaf = task * kGroup; leaf < std::min<std::int64_t>(leaves, (task + 1) * kGroup); ++leaf) {
        for (std::int64_t block = 0; block < n_blocks(); ++block) {
          if (!leaf_touched_[block * leaves + leaf]) continue;
          const float* part = S_.get() + (block * leaves + leaf) * padded(d);
          for (std::int64_t c = 0; c < d; ++c) S[leaf * d + c] += part[c];
        }
        after_leaf(leaf, S + leaf * d);
      }
    });
  }

  // Sweeps the costs up with the leaves' slopes (leaves, d), and adds up each block's gradient. A block goes to the
  // member that swept it down, in whose cache it is, if that member is free.
  void up(const float* slope) {
    std::fill(touched_.begin(), touched_.end(), 0);
    team_.run(n_blocks(), [&](std::size_t, int member) {
      const std::int64_t block = claim(member);
      for (std::int64_t t = first_tile(block); t < first_tile(block + 1); ++t) {
        softwood::up<V>(slope, rows_.d, rows_.p, tiles_[t], scratch(member), sinks_[block]);
      }
    });
  }

  // visit(node, gradient) for every node: p weights, then the offset.
  template <class Visit>
  void gradient(const Visit& visit) {
    const std::int64_t m = shape_.n_internal;
    team_.run((m + kGroup - 1) / kGroup, [&](std::size_t group, int) {
      for (std::int64_t node = group * kGroup; node < std::min<std::int64_t>(m, (group + 1) * kGroup); ++node) {
        visit(node, add_up(sinks_, n_blocks(), node, rows_.p, nothing_.data()));
      }
    });
  }

  std::int64_t n_visits() const {
    std::int64_t total = 0;
    for (std::int64_t t = 0; t < n_tiles_; ++t) total += tiles_[t].n_visits;
    return total;
  }

 private:
  std::int64_t n_blocks() const { return std::min(kBlocks, n_tiles_); }
  std::int64_t first_tile(std::int64_t block) const { return block * n_tiles_ / n_blocks(); }
  // reach, later costs, of the visits and one more; zeros; costs of the leaves; and the reach of those that wait.
  std::int64_t n_places() const { return shape_.n_internal + 2 + shape_.n_leaves; }
  std::int64_t scratch_size() const { return (n_places() + LeafSink::kWaiting + 1) * R; }
  float* scratch(int member) const { return scratch_.get() + member * scratch_size(); }
  float* waiting(int member) const { return scratch(member) + n_places() * R; }

  // A block nobody has taken yet, the member's own first. There are as many calls as blocks.
  std::int64_t claim(int member) {
    for (const bool any : {false, true}) {
      for (std::int64_t block = 0; block < n_blocks(); ++block) {
        int owner = owner_[block].load();
        const bool wanted = owner != kTaken && (any || owner == member);
        if (wanted && owner_[block].compare_exchange_strong(owner, kTaken)) return block;
      }
    }
    return claim(member);
  }

  static constexpr int kTaken = -1;
  const SoftShape& shape_;
  const SoftRows& rows_;
  float tolerance_;
  Team& team_;
  std::int64_t n_tiles_ = 0;
  std::vector<Tile> tiles_;
  Buffer<float> X_, by_row_, s_, P_, scratch_, sums_;
  Buffer<float> S_;  // (blocks, leaves, padded d)
  Buffer<std::int32_t> ints_;
  std::vector<std::uint8_t> touched_, leaf_touched_;  // (blocks, nodes), (blocks, leaves)
  std::vector<float> nothing_;                        // (p + 1,) the gradient of a node that no row visits
  GradientSink sinks_[kBlocks];
  std::atomic<int> owner_[kBlocks];  // who swept a block down
};

}  // namespace softwood
