// Hard routing: each row follows one path and meets only the questions on it.
//
// Rows go down together, 32 at a time and one level per round, so that the questions of different rows overlap in the
// processor. Where all questions are linear eight rows move in step, and a row that has come to its leaf asks there a
// question of zeros that leads nowhere else; in other trees it leaves the round.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lanes.hpp"
#include "parallel.hpp"

namespace softwood {

struct HardTree {
  const std::int32_t* first_child;  // (m,) 0 for a leaf
  const std::int8_t* kind;          // (m,) 0 threshold, 1 linear, -1 leaf
  const std::int32_t* row;          // (m,)
  const std::int32_t* feature;      // (thresholds,)
  const double* threshold;          // (thresholds,)
  const double* weights;            // (linears, p)
  const double* bias;               // (linears,)
};

// A node with its question beside it.
struct Crossing {
  double number;             // threshold or bias
  std::int32_t first_child;  // 0 for a leaf
  std::int32_t at;           // feature, or row of the weights
  bool is_linear;
};

// A node of a tree of linear questions as rows in step read it.
struct Step {
  double bias;
  std::int32_t next;  // child 0; of a leaf the leaf itself
  std::int32_t row;   // of the filled weights; of a leaf a row of zeros
};

constexpr int kTogether = 32;           // rows of one round
constexpr std::int64_t kRouted = 1024;  // rows of one task
constexpr int kOctet = 8;

typedef double Octet __attribute__((vector_size(64)));
struct alignas(64) EightNumbers {
  double lane[kOctet];
};
typedef double HalfOctet __attribute__((vector_size(32)));
typedef double Pair __attribute__((vector_size(16)));

SOFTWOOD_INLINE void load(Octet& out, const double* from) { std::memcpy(&out, from, sizeof out); }
SOFTWOOD_INLINE void load(Octet& out, const EightNumbers& from) { out = *reinterpret_cast<const Octet*>(from.lane); }
// The sums of eight octets, as one.
SOFTWOOD_INLINE Octet sums(const Octet* each) {
  Octet pair[4], four[2];
  for (int k = 0; k < 4; ++k) {
    const Octet &a = each[2 * k], &b = each[2 * k + 1];
    pair[k] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14) +
              __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (int k = 0; k < 2; ++k) {
    const Octet &a = pair[2 * k], &b = pair[2 * k + 1];
    four[k] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13) +
              __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
  }
  return __builtin_shufflevector(four[0], four[1], 0, 1, 2, 3, 8, 9, 10, 11) +
         __builtin_shufflevector(four[0], four[1], 4, 5, 6, 7, 12, 13, 14, 15);
}
SOFTWOOD_INLINE double sum(const Octet& value) {
  const HalfOctet four = __builtin_shufflevector(value, value, 0, 1, 2, 3) +  //
                         __builtin_shufflevector(value, value, 4, 5, 6, 7);
  const Pair two = __builtin_shufflevector(four, four, 0, 1) + __builtin_shufflevector(four, four, 2, 3);
  return two[0] + two[1];
}

// A tree as the rounds read it. A row is some octets, the last one filled up with zeros. So are the weights where there
// are rows enough to pay for their copy; elsewhere the last octet of a row ends with the last column, and holds zeros
// where it would repeat the one before.
struct RoutePlan {
  std::vector<Crossing> nodes;
  std::vector<Step> steps;  // empty where rows do not go in step
  int n_rounds = 0;         // levels of questions
  std::vector<EightNumbers> filled;
  const double* weights;                   // (linears, stride)
  std::int64_t p, n_octets, stride, last;  // last: where the last octet of the weights begins

  RoutePlan(const HardTree& tree, std::int64_t n_nodes, std::int64_t n_linears, std::int64_t n, std::int64_t p)
      : nodes(n_nodes),
        weights(tree.weights),
        p(p),
        n_octets(n_linears ? (p + kOctet - 1) / kOctet : 0),
        stride(p),
        last(p - kOctet) {
    for (std::int64_t k = 0; k < n_nodes; ++k) {
      const std::int32_t first = tree.first_child[k], row = tree.row[k];
      if (first == 0) {
        nodes[k] = {0, 0, 0, false};
      } else if (tree.kind[k] == 0) {
        nodes[k] = {tree.threshold[row], first, tree.feature[row], false};
      } else {
        nodes[k] = {tree.bias[row], first, row, true};
      }
    }
    if (n_linears && (p < kOctet || n >= n_linears)) {
      fill(tree, n_linears);
      take_steps(n_linears);
    }
  }

 private:
  void fill(const HardTree& tree, std::int64_t n_linears) {
    filled.resize((n_linears + 1) * n_octets);  // the last row stays 0
    weights = filled.data()->lane;
    stride = n_octets * kOctet;
    last = stride - kOctet;
    for (std::int64_t k = 0; k < n_linears; ++k) {
      std::copy_n(tree.weights + k * p, p, filled[k * n_octets].lane);
    }
  }

  // For trees of linear questions that are not much deeper in one place than in another.
  void take_steps(std::int64_t n_linears) {
    std::vector<std::int32_t> depth(nodes.size());
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const std::int32_t first = nodes[k].first_child;
      if (first && !nodes[k].is_linear) return;
      if (first) depth[first] = depth[first + 1] = depth[k] + 1;
    }
    n_rounds = depth.back();
    if (n_rounds > kMostRounds) return;
    steps.resize(nodes.size());
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const bool is_leaf = nodes[k].first_child == 0;
      steps[k] = {nodes[k].number, is_leaf ? static_cast<std::int32_t>(k) : nodes[k].first_child,
                  is_leaf ? static_cast<std::int32_t>(n_linears) : nodes[k].at};
    }
  }

  static constexpr int kMostRounds = 12;
};

template <class T>
SOFTWOOD_INLINE void fill_octets(const RoutePlan& plan, const T* x, EightNumbers* out) {
  const std::int64_t n_whole = plan.p / kOctet, rest = plan.p % kOctet;
  for (std::int64_t j = 0; j < n_whole; ++j) {
    for (int lane = 0; lane < kOctet; ++lane) out[j].lane[lane] = static_cast<double>(x[j * kOctet + lane]);
  }
  if (rest == 0) return;
  out[n_whole] = {};
  double* to = out[n_whole].lane + (n_whole * kOctet - plan.last);
  for (std::int64_t j = 0; j < rest; ++j) to[j] = static_cast<double>(x[n_whole * kOctet + j]);
}

SOFTWOOD_INLINE double score(const RoutePlan& plan, const Crossing& here, const EightNumbers* x) {
  const double* w = plan.weights + here.at * plan.stride;
  Octet even = {}, odd = {}, a, b;
  std::int64_t j = 0;
  for (; j + 2 < plan.n_octets; j += 2) {
    load(a, x[j]);
    load(b, w + j * kOctet);
    even += a * b;
    load(a, x[j + 1]);
    load(b, w + (j + 1) * kOctet);
    odd += a * b;
  }
  if (j + 2 == plan.n_octets) {
    load(a, x[j]);
    load(b, w + j * kOctet);
    even += a * b;
    ++j;
  }
  load(a, x[j]);
  load(b, w + plan.last);
  odd += a * b;
  return sum(even + odd) + here.number;
}

// Whether all of some numbers are finite: zero times anything else is NaN.
template <class T>
SOFTWOOD_INLINE bool all_finite(const T* x, std::int64_t count) {
  constexpr int kParts = 32;
  T part[kParts] = {};
  std::int64_t j = 0;
  for (; j + kParts <= count; j += kParts) {
    for (int lane = 0; lane < kParts; ++lane) part[lane] += x[j + lane] * T(0);
  }
  for (; j < count; ++j) part[0] += x[j] * T(0);
  T total = 0;
  for (T each : part) total += each;
  return total == 0;
}

// Leaves of at most kTogether rows; whether all their numbers are finite, where that is asked.
template <class T>
SOFTWOOD_CLONES bool route_together(const RoutePlan& plan, const T* X, int n, bool check, EightNumbers* octets,
                                    std::int32_t* leaf) {
  const Crossing* nodes = plan.nodes.data();
  if (check && !all_finite(X, n * plan.p)) return false;
  std::uint8_t moving[kTogether];
  for (int i = 0; i < n; ++i) {
    if (plan.n_octets) fill_octets(plan, X + i * plan.p, octets + i * plan.n_octets);
    leaf[i] = 0;
    moving[i] = static_cast<std::uint8_t>(i);
  }
  bool first = n == kTogether;
  for (int n_moving = nodes[0].first_child ? n : 0; n_moving > 0; first = false) {
    int n_left = 0;
    for (int k = 0; k < n_moving; ++k) {
      const int i = moving[k];
      if (first) prefetch(X + (kTogether + i) * plan.p, plan.p);
      const Crossing& here = nodes[leaf[i]];
      const bool right = here.is_linear ? score(plan, here, octets + i * plan.n_octets) > 0
                                        : static_cast<double>(X[i * plan.p + here.at]) > here.number;
      leaf[i] = here.first_child + (right ? 1 : 0);
      moving[n_left] = static_cast<std::uint8_t>(i);
      n_left += nodes[leaf[i]].first_child != 0;
    }
    n_moving = n_left;
  }
  return true;
}

// The same, eight rows in step.
template <class T>
SOFTWOOD_CLONES bool route_in_step(const RoutePlan& plan, const T* X, int n, bool check, EightNumbers* octets,
                                   std::int32_t* leaf) {
  if (check && !all_finite(X, n * plan.p)) return false;
  std::int32_t at[kTogether] = {};
  for (int i = 0; i < n; ++i) fill_octets(plan, X + i * plan.p, octets + i * plan.n_octets);
  for (int round = 0; round < plan.n_rounds; ++round) {
    for (int first = 0; first < n; first += kOctet) {
      Octet part[kOctet], bias;
      std::int32_t next[kOctet];
      for (int i = 0; i < kOctet; ++i) {
        const Step& here = plan.steps[at[first + i]];
        const double* w = plan.weights + here.row * plan.stride;
        const EightNumbers* x = octets + (first + i) * plan.n_octets;
        Octet total = {}, a, b;
        for (std::int64_t j = 0; j < plan.n_octets; ++j) {
          load(a, x[j]);
          load(b, w + j * kOctet);
          total += a * b;
        }
        part[i] = total;
        bias[i] = here.bias;
        next[i] = here.next;
      }
      const auto right = sums(part) + bias > 0.0;  // -1 where it holds
      for (int i = 0; i < kOctet; ++i) at[first + i] = next[i] - static_cast<std::int32_t>(right[i]);
    }
  }
  std::copy_n(at, n, leaf);
  return true;
}

// The leaf of each row; false where a number is not finite and ``check`` asks for that.
template <class T>
bool route(const RoutePlan& plan,
           const T* X,  // (n, p)
           std::int64_t n, bool check,
           std::int32_t* leaf,  // (n,)
           Team& team) {
  std::atomic<bool> finite{true};
  team.run((n + kRouted - 1) / kRouted, [&](std::size_t task, int) {
    const std::int64_t start = task * kRouted, stop = std::min<std::int64_t>(n, start + kRouted);
    std::vector<EightNumbers> octets(kTogether * plan.n_octets);
    for (std::int64_t i = start; i < stop && finite; i += kTogether) {
      const int count = static_cast<int>(std::min<std::int64_t>(kTogether, stop - i));
      const auto& go = plan.steps.empty() ? route_together<T> : route_in_step<T>;
      if (!go(plan, X + i * plan.p, count, check, octets.data(), leaf + i)) finite = false;
    }
  });
  return finite;
}

}  // namespace softwood
