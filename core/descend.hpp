// Descent: many training steps in one call, and the objective and gradient over all rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "engine.hpp"
#include "slope.hpp"

namespace softwood {

constexpr std::int64_t kChunk = 2048;    // rows of one batch in sweeps over all rows
constexpr float kLazyOverhead = 2.0f;    // cost of a lazy visit over a dense one, per row (docs/performance.md)
constexpr std::int32_t kLazyFrom = 48;   // trees with fewer questions are always swept densely
constexpr std::int64_t kSortFrom = 128;  // columns of statistics times questions from which sorting a batch pays

struct Adam {
  float beta1, beta2, epsilon;
};

// What the optimiser remembers between calls, the shape of theta.
struct AdamState {
  float *mean, *square;  // (n_internal, p + 1)
  std::int64_t step;
};

// One Adam step with decoupled decay on columns [0, n_decayed) of a block.
SOFTWOOD_INLINE void adam_block(const float* gradient, std::int64_t count, std::int64_t n_decayed, float gain,
                                float rate, float keep, float root_correction, const Adam& adam, float* theta,
                                float* mean, float* square) {
  for (std::int64_t j = 0; j < count; ++j) {
    const float g = gradient[j] * gain;
    mean[j] = adam.beta1 * mean[j] + (1 - adam.beta1) * g;
    square[j] = adam.beta2 * square[j] + (1 - adam.beta2) * g * g;
    const float kept = j < n_decayed ? theta[j] * keep : theta[j];
    theta[j] = kept - rate * mean[j] / (std::sqrt(square[j]) * root_correction + adam.epsilon);
  }
}

SOFTWOOD_CLONES inline void adam_step(const float* gradient, std::int64_t count, std::int64_t n_decayed, float gain,
                                      float rate, float keep, float root_correction, const Adam& adam, float* theta,
                                      float* mean, float* square) {
  adam_block(gradient, count, n_decayed, gain, rate, keep, root_correction, adam, theta, mean, square);
}

struct Descent {
  const SoftShape& shape;
  const SoftRows& rows;
  const ImpurityChoice& impurity;
  const Adam& adam;
  float decay;
  std::vector<double> S, phi;
  std::vector<float> slope;

  Descent(const SoftShape& shape, const SoftRows& rows, const ImpurityChoice& impurity, const Adam& adam, float decay)
      : shape(shape),
        rows(rows),
        impurity(impurity),
        adam(adam),
        decay(decay),
        S(shape.n_leaves * rows.d),
        phi(shape.n_leaves),
        slope(shape.n_leaves * rows.d) {}

  // One step on one batch; returns the objective per row.
  template <int V>
  double step(Engine<V>& engine, const std::int32_t* batch, std::int64_t count, float rate, float* theta,
              AdamState& state, std::int32_t* leaf_of) {
    engine.down(batch, count, theta, leaf_of);
    std::fill(S.begin(), S.end(), 0.0);
    engine.sums(S.data(), [&](std::int64_t leaf, const double* sums) {
      phi[leaf] = phi_and_slope(impurity, sums, rows.d, slope.data() + leaf * rows.d);
    });
    engine.up(slope.data());
    ++state.step;
    const float corrected = rate / (1 - std::pow(adam.beta1, static_cast<float>(state.step)));
    const float root = 1 / std::sqrt(1 - std::pow(adam.beta2, static_cast<float>(state.step)));
    const std::int64_t p = rows.p;
    engine.gradient([&](std::int64_t node, const float* gradient) {
      const std::int64_t at = node * (p + 1);
      adam_step(gradient, p + 1, p, 1.0f / count, corrected, 1 - rate * decay, root, adam, theta + at, state.mean + at,
                state.square + at);
    });
    return std::accumulate(phi.begin(), phi.end(), 0.0) / count;
  }
};

// Orders a batch by a key of its rows, stably.
template <class Key>
void order_by(const std::int32_t* batch, std::int64_t count, std::int64_t n_keys, const Key& key, std::int32_t* out) {
  std::vector<std::int32_t> start(n_keys + 1, 0);
  for (std::int64_t i = 0; i < count; ++i) ++start[key(batch[i]) + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
  for (std::int64_t i = 0; i < count; ++i) out[start[key(batch[i])]++] = batch[i];
}

struct Plan {
  const std::int32_t* batches;  // (steps, count)
  const float* rates;           // (steps,)
  std::int64_t steps, count;
  float tolerance;           // 0: always dense
  const std::int32_t* rank;  // (leaves,) left-to-right rank of each leaf
  std::int32_t* leaf_of;     // (n,) last likeliest leaf of each row
};

// Runs the plan's steps. Rows of one class share a tile, so that it has few columns of statistics; in a lazy sweep rows
// that were last in one leaf do, so that it visits few nodes. The first step of a call is lazy where lazy may pay; the
// visits it counts decide the rest (a count, not a clock: the choice is the same on every machine). Returns the share
// of (row, node) pairs visited, 1 when dense.
inline double descend(Descent& descent, const Plan& plan, float* theta, AdamState& state, double* objective, Team& team,
                      const Poll& interrupted) {
  const SoftRows& rows = descent.rows;
  const SoftShape& shape = descent.shape;
  const bool may_be_lazy = plan.tolerance > 0 && shape.n_internal >= kLazyFrom;
  std::unique_ptr<Engine<1>> lazy;
  std::unique_ptr<Engine<4>> dense;
  std::vector<std::int32_t> by_class(plan.count), by_leaf(plan.count);
  const bool sorts = rows.codes && (may_be_lazy || (rows.d - 1) * shape.n_internal > kSortFrom);
  double share = may_be_lazy ? 0 : 1;
  for (std::int64_t step = 0; step < plan.steps && !interrupted(); ++step) {
    const std::int32_t* batch = plan.batches + step * plan.count;
    if (sorts) {
      order_by(batch, plan.count, rows.d, [&](std::int32_t row) { return rows.codes[row]; }, by_class.data());
      batch = by_class.data();
    }
    const float rate = plan.rates[step];
    if (share * kLazyOverhead < 1) {
      if (!lazy) lazy = std::make_unique<Engine<1>>(shape, rows, plan.count, plan.tolerance, team);
      order_by(
          batch, plan.count, shape.n_leaves, [&](std::int32_t row) { return plan.rank[plan.leaf_of[row]]; },
          by_leaf.data());
      objective[step] = descent.step(*lazy, by_leaf.data(), plan.count, rate, theta, state, plan.leaf_of);
      share = static_cast<double>(lazy->n_visits()) * kLanes / (static_cast<double>(plan.count) * shape.n_internal);
    } else {
      if (!dense) dense = std::make_unique<Engine<4>>(shape, rows, plan.count, 0.0f, team);
      objective[step] =
          descent.step(*dense, batch, plan.count, rate, theta, state, may_be_lazy ? plan.leaf_of : nullptr);
    }
  }
  return std::min(share, 1.0);
}

// Expected statistics of the leaves over all rows, S (leaves, d); in chunks that fit in cache, added in double.
inline void leaf_sums(const SoftShape& shape, const SoftRows& rows, const float* theta, double* S, Team& team,
                      const Poll& interrupted) {
  Engine<4> engine(shape, rows, std::min(rows.n, kChunk), 0.0f, team);
  std::vector<std::int32_t> every(rows.n);
  std::iota(every.begin(), every.end(), 0);
  for (std::int64_t first = 0; first < rows.n && !interrupted(); first += kChunk) {
    engine.down(every.data() + first, std::min(kChunk, rows.n - first), theta, nullptr);
    engine.sums(S, [](std::int64_t, const double*) {});
  }
}

// theta_bar (n_internal, p + 1) over all rows, given the slopes of the leaves.
inline void gradient(const SoftShape& shape, const SoftRows& rows, const float* theta, const float* slope,
                     double* theta_bar, Team& team, const Poll& interrupted) {
  Engine<4> engine(shape, rows, std::min(rows.n, kChunk), 0.0f, team);
  std::vector<std::int32_t> every(rows.n);
  std::iota(every.begin(), every.end(), 0);
  const std::int64_t p = rows.p;
  for (std::int64_t first = 0; first < rows.n && !interrupted(); first += kChunk) {
    engine.down(every.data() + first, std::min(kChunk, rows.n - first), theta, nullptr);
    engine.up(slope);
    engine.gradient([&](std::int64_t node, const float* part) {
      double* to = theta_bar + node * (p + 1);
      for (std::int64_t j = 0; j <= p; ++j) to[j] += part[j];
    });
  }
}

}  // namespace softwood
