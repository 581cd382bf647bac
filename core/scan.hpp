// The best cut of one node along one feature, from the histogram of its bins.
//
// Cells of a histogram are the d statistics of a bin and, where the statistics do not hold it already, the number of
// the caller's rows. Empty bins are passed over, prefix sums are kept column by column, and the cost of a cut,
// phi(left) + phi(S - left), is taken eight cuts at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "impurity.hpp"

namespace softwood {

constexpr int kCodes = 256;

// A question on codes. How a row is routed is said here and nowhere else.
struct Cut {
  double gain = -std::numeric_limits<double>::infinity();
  std::int32_t feature = -1;
  std::int32_t bin = 0;   // the last bin of child 0
  std::int32_t next = 0;  // the first bin of child 1 that this node has rows in
  bool right(std::uint8_t code) const { return code > bin; }
};

// What a scan needs to know of the node.
struct NodeSums {
  const double* S;  // (d,)
  double phi;
  double count;      // the caller's rows
  double tolerance;  // gains closer than this are equal
};

// Which cuts are allowed: enough of the caller's rows on either side.
struct Allowed {
  double min_leaf;
  bool operator()(double left_count, double count) const {
    return (left_count >= min_leaf) & (count - left_count >= min_leaf);  // no branch: cuts are judged in packs
  }
};

template <class Impurity>
class Scan {
 public:
  Scan(const Impurity& impurity, bool counted, Allowed allowed)
      : impurity_(impurity),
        counted_(counted),
        allowed_(allowed),
        running_(impurity.d()),
        left_(impurity.d() * kCodes),
        packs_(2 * impurity.d()),
        counts_(kCodes),
        costs_(kCodes),
        bins_(kCodes) {}

  // The first of the cuts whose gain is the greatest, up to rounding. `listed` are the bins to look at, increasing.
  Cut best(const NodeSums& node, int feature, const double* cells, const std::int32_t* listed, int n_listed) {
    add_up(cells, listed, n_listed);
    if (size_ < 2) return {};
    const double least = take_costs(node);
    if (!(least < kNever)) return {};
    int j = 0;
    while (!(costs_[j] <= least + node.tolerance)) ++j;
    return {node.phi - least, feature, bins_[j], bins_[j + 1]};
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // Prefix sums over the bins that hold rows. The sums are local: in memory each addition would wait for a store.
  void add_up(const double* cells, const std::int32_t* listed, int n_listed) {
    const int d = impurity_.d(), stride = d + counted_;
    double local[Impurity::kD ? Impurity::kD : 1];
    double* running = Impurity::kD ? local : running_.data();
    std::fill_n(running, d, 0.0);
    double total = 0;
    int size = 0;
    for (int at = 0; at < n_listed; ++at) {
      const double* cell = cells + listed[at] * stride;
      const double count = counted_ ? cell[d] : impurity_.weight(cell);
      if (!(count > 0)) continue;
      for (int c = 0; c < d; ++c) left_[c * kCodes + size] = running[c] += cell[c];
      counts_[size] = total += count;
      bins_[size++] = listed[at];
    }
    size_ = size;
  }

  // Costs of all cuts, infinite where a cut is not allowed; returns the least.
  double take_costs(const NodeSums& node) {
    for (int j = size_ - 1; j < kCodes && j < size_ - 1 + Pack::kLanes; ++j) counts_[j] = node.count;  // no cut there
    Pack least(kNever);
    for (int j = 0; j + 1 < size_; j += Pack::kLanes) {
      Pack cost;
      if constexpr (Impurity::kD > 0) {
        Pack left[Impurity::kD], right[Impurity::kD];
        cost = cost_of(node.S, j, left, right);
      } else {
        cost = cost_of(node.S, j, packs_.data(), packs_.data() + impurity_.d());
      }
      for (int l = 0; l < Pack::kLanes; ++l) {
        cost.lane[l] = allowed_(counts_[j + l], node.count) ? cost.lane[l] : kNever;
        least.lane[l] = cost.lane[l] < least.lane[l] ? cost.lane[l] : least.lane[l];
      }
      cost.store(&costs_[j]);
    }
    return *std::min_element(least.lane, least.lane + Pack::kLanes);
  }

  Pack cost_of(const double* S, int j, Pack* left, Pack* right) const {
    for (int c = 0; c < impurity_.d(); ++c) {
      left[c] = Pack::load(&left_[c * kCodes + j]);
      right[c] = Pack(S[c]) - left[c];
    }
    return impurity_.phi(left) + impurity_.phi(right);
  }

  Impurity impurity_;
  bool counted_;
  Allowed allowed_;
  int size_ = 0;  // bins that hold rows
  std::vector<double> running_;
  std::vector<double> left_;  // (d, 256) prefix sums
  std::vector<Pack> packs_;
  std::vector<double> counts_, costs_;
  std::vector<std::int32_t> bins_;
};

}  // namespace softwood
