// Training by sampled paths: each row walks down the tree by chance, B times, and only what it passes is computed.
//
// For leaf statistics held fixed, cost(L) * grad log p(L | x) is an unbiased estimate of a row's gradient, and it stays
// unbiased when at every node on the path the loss of the row under that node's own constant is taken off first: a
// baseline may depend on the row and the node, not on what is drawn below. The statistics of all nodes are those of the
// sampled paths. Chance is a hash of (seed, step, row, draw, level) and sums go visit by visit in the order of the
// walks, node by node: results do not depend on threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "descend.hpp"

namespace softwood {

SOFTWOOD_INLINE std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// A number in [0, 1), of 24 bits, for one row's choice at one level.
SOFTWOOD_INLINE float chance(std::uint64_t walk, std::uint64_t level) {
  return static_cast<float>(mixed(walk + level * 0x9E3779B97F4A7C15u) >> 40) * 0x1p-24f;
}

SOFTWOOD_INLINE std::uint64_t walk_key(std::uint64_t seed, std::uint64_t step, std::uint64_t row, std::uint64_t draw) {
  const std::uint64_t start = mixed(seed + step * 0x9E3779B97F4A7C15u);
  return mixed(start ^ (row << 24 ^ draw));
}

SOFTWOOD_INLINE void load_part(Lanes& out, const float* from, std::int64_t count) {
  if (count >= kLanes) {
    std::memcpy(&out, from, sizeof out);
    return;
  }
  out = Lanes{};
  std::memcpy(&out, from, count * sizeof(float));
}

// w . x + b of p columns, the offset behind the weights.
SOFTWOOD_INLINE float score(const float* w, const float* x, std::int64_t p) {
  Lanes total = {};
  for (std::int64_t j = 0; j < p; j += kLanes) {
    Lanes a, b;
    load_part(a, w + j, p - j);
    load_part(b, x + j, p - j);
    total += a * b;
  }
  return sum(total) + w[p];
}

// Sixteen walks side by side. `node` is an internal number >= 0 or ~leaf; place and pull (depth + 1, walks) are filled
// level by level: the node that is passed, and d log p / d score of the side that is taken.
struct Walks {
  std::int64_t depth, count;        // levels of questions; walks, the draws of a row side by side
  std::vector<std::int32_t> place;  // (depth + 1, count) internal number, or n_internal + leaf; -1 below a leaf
  std::vector<float> pull;          // (depth, count)
};

SOFTWOOD_CLONES inline void walk_down(const SoftShape& shape, const float* theta, const float* const* x,
                                      const std::uint64_t* key, std::int64_t p, int n, std::int64_t first,
                                      Walks& walks) {
  std::int32_t node[kLanes] = {};
  for (std::int64_t level = 0; level <= walks.depth; ++level) {
    std::int32_t* place = walks.place.data() + level * walks.count + first;
    float* pull = walks.pull.data() + level * walks.count + first;
    Lanes z = {};
    bool any = false;
    for (int i = 0; i < n; ++i) {
      place[i] = node[i] >= 0 ? node[i] : node[i] == INT32_MIN ? -1 : shape.n_internal + ~node[i];
      if (node[i] < 0) continue;
      z[i] = score(theta + node[i] * (p + 1), x[i], p);
      any = true;
    }
    if (!any) {
      for (std::int64_t below = level + 1; below <= walks.depth; ++below) {
        std::fill_n(walks.place.data() + below * walks.count + first, n, -1);
      }
      return;
    }
    const Lanes P = sigmoid(z);
    for (int i = 0; i < n; ++i) {
      if (node[i] < 0) {
        node[i] = INT32_MIN;
        continue;
      }
      const int right = chance(key[i], level) < P[i];
      pull[i] = right - P[i];
      node[i] = shape.child[2 * node[i] + right];
      if (node[i] >= 0) __builtin_prefetch(theta + node[i] * (p + 1));
    }
  }
}

// s . slope of one row.
SOFTWOOD_INLINE float cost_of(const SoftRows& rows, std::int64_t row, const float* slope) {
  if (rows.codes) return rows.s[row] * slope[rows.codes[row]];
  float cost = 0;
  for (std::int64_t c = 0; c < rows.d; ++c) cost += rows.s[row * rows.d + c] * slope[c];
  return cost;
}

// One walk at a node.
struct Visit {
  std::int32_t walk;
  float pull;
};

// to (p + 1) += the estimates of a node's visits: its weights, then its offset.
SOFTWOOD_CLONES inline void add_estimates(const SoftRows& rows, const Visit* visit, std::int64_t count,
                                          const std::int32_t* row_of, const float* cost, const float* slope,
                                          float* to) {
  const std::int64_t p = rows.p;
  for (std::int64_t v = 0; v < count; ++v) {
    const std::int64_t row = row_of[visit[v].walk];
    const float z_bar = visit[v].pull * (cost[visit[v].walk] - cost_of(rows, row, slope));
    const float* x = rows.Z + row * p;
    for (std::int64_t j = 0; j < p; ++j) to[j] += z_bar * x[j];
    to[p] += z_bar;
  }
}

class Sampler {
 public:
  static constexpr std::int64_t kGroup = 16;  // nodes of one task

  Sampler(const SoftShape& shape, const SoftRows& rows, const ImpurityChoice& impurity, std::int64_t batch_size,
          std::int64_t n_draws, Team& team)
      : shape_(shape),
        rows_(rows),
        impurity_(impurity),
        team_(team),
        n_draws_(n_draws),
        n_nodes_(shape.n_internal + shape.n_leaves) {
    walks_.depth = depth_of(shape);
    walks_.count = batch_size * n_draws;
    walks_.place.resize((walks_.depth + 1) * walks_.count);
    walks_.pull.resize((walks_.depth + 1) * walks_.count);
    visits_.resize(walks_.place.size());
    row_.resize(walks_.count);
    start_.resize(n_nodes_ + 1);
    slope_.resize(n_nodes_ * rows.d);
    phi_.resize(shape.n_leaves);
    cost_.resize(walks_.count);
    sums_.resize(team.size() * rows.d);
    gradient_.resize(team.size() * (rows.p + 1));
  }

  // One step; returns the objective per row.
  double step(const std::int32_t* batch, std::int64_t count, std::uint64_t seed, float rate, float decay,
              const Adam& adam, float* theta, AdamState& state) {
    walk(batch, seed, state.step, theta);
    sort();
    statistics();
    ++state.step;
    const float corrected = rate / (1 - std::pow(adam.beta1, static_cast<float>(state.step)));
    const float root = 1 / std::sqrt(1 - std::pow(adam.beta2, static_cast<float>(state.step)));
    const std::int64_t p = rows_.p;
    gradient([&](std::int64_t node, const float* gradient) {
      const std::int64_t at = node * (p + 1);
      adam_step(gradient, p + 1, p, 1.0f / (count * n_draws_), corrected, 1 - rate * decay, root, adam, theta + at,
                state.mean + at, state.square + at);
    });
    return std::accumulate(phi_.begin(), phi_.end(), 0.0) / count;
  }

 private:
  static std::int64_t depth_of(const SoftShape& shape) {
    std::vector<std::int32_t> level(shape.n_internal, 0);
    std::int64_t deepest = 0;
    for (std::int32_t k = 0; k < shape.n_internal; ++k) {  // parents before children
      deepest = std::max<std::int64_t>(deepest, level[k] + 1);
      for (int side = 0; side < 2; ++side) {
        const std::int32_t child = shape.child[2 * k + side];
        if (child >= 0) level[child] = level[k] + 1;
      }
    }
    return deepest;
  }

  void walk(const std::int32_t* batch, std::uint64_t seed, std::uint64_t step, const float* theta) {
    for (std::int64_t walk = 0; walk < walks_.count; ++walk) row_[walk] = batch[walk / n_draws_];
    team_.run((walks_.count + kLanes - 1) / kLanes, [&](std::size_t task, int) {
      const std::int64_t first = task * kLanes;
      const int n = static_cast<int>(std::min<std::int64_t>(kLanes, walks_.count - first));
      const float* x[kLanes];
      std::uint64_t key[kLanes];
      for (int i = 0; i < n; ++i) {
        const std::int64_t row = row_[first + i];
        x[i] = rows_.Z + row * rows_.p;
        key[i] = walk_key(seed, step, row, (first + i) % n_draws_);
      }
      walk_down(shape_, theta, x, key, rows_.p, n, first, walks_);
    });
  }

  // Visits in the order of their nodes, and of the walks at a node.
  void sort() {
    std::fill(start_.begin(), start_.end(), 0);
    for (const std::int32_t node : walks_.place) start_[node + 1] += node >= 0;
    std::partial_sum(start_.begin(), start_.end(), start_.begin());
    next_.assign(start_.begin(), start_.end() - 1);
    for (std::int64_t level = 0, at = 0; level <= walks_.depth; ++level) {
      for (std::int32_t walk = 0; walk < walks_.count; ++walk, ++at) {
        const std::int32_t node = walks_.place[at];
        if (node >= 0) visits_[next_[node]++] = {walk, walks_.pull[at]};
      }
    }
  }

  // Statistics and slope of every node that is passed, and what each walk costs in its leaf.
  void statistics() {
    const std::int64_t d = rows_.d;
    groups(n_nodes_, [&](std::int64_t node, int member) {
      double* S = sums_.data() + member * d;
      float* slope = slope_.data() + node * d;
      const std::int64_t leaf = node - shape_.n_internal;
      if (leaf >= 0) phi_[leaf] = 0;
      const std::int32_t n_visits = start_[node + 1] - start_[node];
      if (n_visits == 0 || (leaf < 0 && n_visits == 1)) return;
      std::fill_n(S, d, 0.0);
      for (std::int32_t v = start_[node]; v < start_[node + 1]; ++v) add_statistics(row_[visits_[v].walk], S);
      for (std::int64_t c = 0; c < d; ++c) S[c] /= n_draws_;
      const double phi = phi_and_slope(impurity_, S, d, slope);
      if (leaf < 0) return;
      phi_[leaf] = phi;
      for (std::int32_t v = start_[node]; v < start_[node + 1]; ++v) {
        const std::int32_t walk = visits_[v].walk;
        cost_[walk] = cost_of(rows_, row_[walk], slope);
      }
    });
  }

  void add_statistics(std::int64_t row, double* S) const {
    if (rows_.codes) {
      S[rows_.codes[row]] += rows_.s[row];
      return;
    }
    for (std::int64_t c = 0; c < rows_.d; ++c) S[c] += rows_.s[row * rows_.d + c];
  }

  // step(node, gradient) for every question: p weights, then the offset; sums over rows and draws.
  template <class Step>
  void gradient(const Step& step) {
    const std::int64_t p = rows_.p;
    groups(shape_.n_internal, [&](std::int64_t node, int member) {
      float* to = gradient_.data() + member * (p + 1);
      std::fill_n(to, p + 1, 0.0f);
      const std::int32_t first = start_[node], n_visits = start_[node + 1] - first;
      if (n_visits > 1) {  // a walk alone at a node costs there what it costs in its leaf
        add_estimates(rows_, visits_.data() + first, n_visits, row_.data(), cost_.data(),
                      slope_.data() + node * rows_.d, to);
      }
      step(node, to);
    });
  }

  template <class Body>
  void groups(std::int64_t count, const Body& body) {
    team_.run((count + kGroup - 1) / kGroup, [&](std::size_t group, int member) {
      const std::int64_t stop = std::min<std::int64_t>(count, (group + 1) * kGroup);
      for (std::int64_t node = group * kGroup; node < stop; ++node) body(node, member);
    });
  }

  const SoftShape& shape_;
  const SoftRows& rows_;
  const ImpurityChoice& impurity_;
  Team& team_;
  std::int64_t n_draws_, n_nodes_;
  Walks walks_;
  std::vector<Visit> visits_;                     // in the order of their nodes, and of the walks at a node
  std::vector<std::int32_t> row_, start_, next_;  // (walks,), (nodes + 1,), (nodes,)
  std::vector<float> slope_, cost_, gradient_;    // (nodes, d), (walks,), (members, p + 1)
  std::vector<double> phi_, sums_;                // (leaves,), (members, d)
};

}  // namespace softwood
