// The best cut of one node along one feature, from the histogram of its bins.
//
// Cells of a histogram are the d statistics of a bin and, where the statistics do not hold it already, the number of
// the caller's rows. Empty bins are passed over, prefix sums are kept column by column, and the cost of a cut,
// phi(left) + phi(S - left), is taken eight cuts at a time.
#pragma once

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
  const double* S;   // (d,)
  double phi;
  double count;      // the caller's rows
  double tolerance;  // gains closer than this are equal
};

// Which cuts are allowed: enough of the caller's rows on either side.
struct Allowed {
  double min_leaf;
  bool operator()(double left_count, double count) const {
    return left_count >= min_leaf && count - left_count >= min_leaf;
  }
};

template <class Impurity>
class Scan {
 public:
  Scan(const Impurity& impurity, bool counted, Allowed allowed)
      : impurity_(impurity), counted_(counted), allowed_(allowed), running_(impurity.d()),
        left_(impurity.d() * kCodes), packs_(2 * impurity.d()), counts_(kCodes), costs_(kCodes), bins_(kCodes) {}

  void begin() {
    size_ = 0;
    count_ = 0;
    for (double& sum : running_) sum = 0;
  }

  // The next bin, in increasing order.
  void push(int bin, const double* cell) {
    const int d = impurity_.d();
    const double count = counted_ ? cell[d] : impurity_.weight(cell);
    if (!(count > 0)) return;
    for (int c = 0; c < d; ++c) left_[c * kCodes + size_] = running_[c] += cell[c];
    counts_[size_] = count_ += count;
    bins_[size_++] = bin;
  }

  // The first of the cuts whose gain is the greatest, up to rounding.
  Cut best(const NodeSums& node, int feature) {
    Cut cut;
    if (size_ < 2) return cut;
    take_costs(node);
    double least = std::numeric_limits<double>::infinity();
    for (int j = 0; j + 1 < size_; ++j) {
      if (!allowed_(counts_[j], node.count)) costs_[j] = std::numeric_limits<double>::infinity();
      least = costs_[j] < least ? costs_[j] : least;
    }
    if (!(least < std::numeric_limits<double>::infinity())) return cut;
    int j = 0;
    while (!(costs_[j] <= least + node.tolerance)) ++j;
    return {node.phi - least, feature, bins_[j], bins_[j + 1]};
  }

 private:
  void take_costs(const NodeSums& node) {
    for (int j = 0; j + 1 < size_; j += Pack::kLanes) {
      if constexpr (Impurity::kD > 0) {
        Pack left[Impurity::kD], right[Impurity::kD];
        cost_of(node.S, j, left, right);
      } else {
        cost_of(node.S, j, packs_.data(), packs_.data() + impurity_.d());
      }
    }
  }

  void cost_of(const double* S, int j, Pack* left, Pack* right) {
    for (int c = 0; c < impurity_.d(); ++c) {
      left[c] = Pack::load(&left_[c * kCodes + j]);
      right[c] = Pack(S[c]) - left[c];
    }
    (impurity_.phi(left) + impurity_.phi(right)).store(&costs_[j]);
  }

  Impurity impurity_;
  bool counted_;
  Allowed allowed_;
  int size_ = 0;
  double count_ = 0;
  std::vector<double> running_;
  std::vector<double> left_;  // (d, 256) prefix sums
  std::vector<Pack> packs_;
  std::vector<double> counts_, costs_;
  std::vector<std::int32_t> bins_;
};

}  // namespace softwood
