// Greedy growth of a hard tree on binned columns.
//
// Four seams and no other ifs: who is next (Frontier), which features a node may ask about (candidates), which cuts
// are allowed (Allowed) and how a row is routed (Cut::right). A large node's histogram is its parent's less its
// sibling's; histograms live in a bounded pool, and a node without one (small, or none is free) adds its rows to one
// feature's cells at a time and visits only the bins it marked. Gains within rounding of each other are equal and the
// first feature and bin win, so that the tree does not depend on the order of summation or the number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "bins.hpp"
#include "cells.hpp"
#include "parallel.hpp"
#include "scan.hpp"

namespace softwood {

struct Binned {
  const std::uint8_t* codes;    // (p, n)
  const std::int64_t* offsets;  // (p + 1,) where a column's bins start in low and high
  const double* low;            // (bins,)
  const double* high;           // (bins,)
  std::int64_t n, p;

  const std::uint8_t* column(std::int64_t j) const { return codes + j * n; }
  int n_bins(std::int64_t j) const { return static_cast<int>(offsets[j + 1] - offsets[j]); }
  double threshold(const Cut& cut) const {
    return between(high[offsets[cut.feature] + cut.bin], low[offsets[cut.feature] + cut.next]);
  }
};

struct GrowLimits {
  std::int64_t max_depth, max_leaf_nodes;  // the greatest number stands for none
  bool best_first;
  double min_samples_split, min_samples_leaf;  // of the caller's rows
  double min_decrease;                         // of phi: the decrease per unit of weight times the total weight
};

// Breadth-first, children side by side.
struct GrownTree {
  std::vector<std::int32_t> arity;    // (m,)
  std::vector<std::int32_t> feature;  // (internal nodes,)
  std::vector<std::int32_t> bin;      // (internal nodes,) the last bin of child 0
  std::vector<double> threshold;      // (internal nodes,)
  std::vector<double> statistics;     // (m, d)
};

struct GrowingNode {
  std::int64_t begin, end;  // its rows, in the partition
  std::int32_t depth;
  std::int32_t first_child = 0;
  std::int32_t slot = -1;  // its histogram in the pool
  double count = 0, phi = 0, tolerance = 0;
  Cut cut;
  std::int64_t size() const { return end - begin; }
};

// Who is next: the node of greatest gain (the older one of equals), or simply the newest, which keeps the fewest
// histograms alive; without a limit on leaves the order makes no difference to the tree.
class Frontier {
 public:
  explicit Frontier(bool best_first) : best_first_(best_first) {}
  bool empty() const { return waiting_.empty(); }
  void push(double gain, std::int32_t node) {
    waiting_.push_back({gain, node});
    if (best_first_) std::push_heap(waiting_.begin(), waiting_.end(), later);
  }
  std::int32_t pop() {
    if (best_first_) std::pop_heap(waiting_.begin(), waiting_.end(), later);
    const std::int32_t node = waiting_.back().node;
    waiting_.pop_back();
    return node;
  }

 private:
  struct Waiting {
    double gain;
    std::int32_t node;
  };
  static bool later(const Waiting& a, const Waiting& b) { return a.gain != b.gain ? a.gain < b.gain : a.node > b.node; }
  bool best_first_;
  std::vector<Waiting> waiting_;
};

// A bounded number of histograms, made when first asked for.
class HistogramPool {
 public:
  HistogramPool(std::size_t size, std::size_t budget_bytes)
      : size_(size),
        most_(std::max<std::size_t>(2, budget_bytes / (sizeof(double) * std::max<std::size_t>(1, size)))) {}
  std::int32_t acquire() {
    if (!free_.empty()) {
      const std::int32_t slot = free_.back();
      free_.pop_back();
      return slot;
    }
    if (slots_.size() == most_) return -1;
    slots_.emplace_back(new double[size_]);
    return static_cast<std::int32_t>(slots_.size() - 1);
  }
  void release(std::int32_t& slot) {
    if (slot >= 0) free_.push_back(slot);
    slot = -1;
  }
  double* at(std::int32_t slot) { return slots_[slot].get(); }

 private:
  std::size_t size_, most_;
  std::vector<std::unique_ptr<double[]>> slots_;
  std::vector<std::int32_t> free_;
};

constexpr std::int64_t kSmallNode = 400;        // rows below which marking bins beats whole histograms
constexpr std::int64_t kMinParallel = 1 << 14;  // cells to add below which waking threads costs more
constexpr std::size_t kPoolBytes = std::size_t(64) << 20;
constexpr int kFeatureBlock = 4;  // features whose cells are added to together

// Adds n gathered rows to the cells of Width features.
template <int Width, class Rows>
void add_to_cells(const Rows& rows, const typename Rows::Gathered& gathered, const std::int32_t* row, std::int64_t n,
                  const std::uint8_t* const* columns, double* const* cells) {
  const int stride = rows.stride();
  const std::uint8_t* column[Width];
  double* cell[Width];
  for (int w = 0; w < Width; ++w) column[w] = columns[w], cell[w] = cells[w];
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t i = row[k];
    for (int w = 0; w < Width; ++w) rows.add(gathered, k, cell[w] + column[w][i] * stride);
  }
}

template <class Impurity, class Rows>
class Grower {
 public:
  Grower(const Binned& bins, const Rows& rows, const std::int32_t* copies, const Impurity& impurity, bool counted,
         const GrowLimits& limits, Team& team, const Poll& poll)
      : bins_(bins),
        rows_(rows),
        copies_(copies),
        impurity_(impurity),
        limits_(limits),
        team_(team),
        poll_(poll),
        frontier_(limits.best_first),
        features_(candidates()),
        cells_at_(bins.p),
        pool_(place_cells(), kPoolBytes),
        partition_(bins.n),
        spare_(bins.n),
        cuts_(2 * bins.p) {
    const Allowed allowed{std::max(1.0, limits.min_samples_leaf)};
    for (int member = 0; member < team.size(); ++member) {
      workers_.push_back({Scan<Impurity>(impurity, counted, allowed), std::vector<double>(kCodes * rows.stride())});
    }
    std::iota(partition_.begin(), partition_.end(), 0);
    std::iota(every_bin_.begin(), every_bin_.end(), 0);
  }

  GrownTree grow() { return grow_all(nullptr); }

  // Grows a tree of some of the rows; the first question is given, or searched like the others.
  GrownTree grow(const std::int32_t* rows, std::int64_t n, const GrowLimits& limits, const Cut* first) {
    limits_ = limits;
    partition_.assign(rows, rows + n);
    for (GrowingNode& node : nodes_) pool_.release(node.slot);
    nodes_.clear();
    statistics_.clear();
    frontier_ = Frontier(limits.best_first);
    return grow_all(first);
  }

 private:
  GrownTree grow_all(const Cut* first) {
    const std::int32_t root = add_node(0, static_cast<std::int64_t>(partition_.size()), 0);
    std::int64_t n_leaves = 1;
    if (n_leaves < limits_.max_leaf_nodes && is_open(root)) {
      if (first) {
        nodes_[root].cut = *first;
      } else {
        search(root);
      }
      enqueue(root);
    }
    while (!frontier_.empty() && n_leaves < limits_.max_leaf_nodes && !interrupted()) {
      ++n_leaves;
      split(frontier_.pop(), n_leaves < limits_.max_leaf_nodes);
    }
    return listed();
  }

  struct Worker {
    Scan<Impurity> scan;
    std::vector<double> cells;  // of one feature; all 0 between uses
  };

  // The features a node may ask about: here every one that is not constant. A subset of its own for each node must
  // not subtract histograms, whose parents would lack its features: it uses search_marked.
  std::vector<std::int32_t> candidates() const {
    std::vector<std::int32_t> features;
    for (std::int32_t j = 0; j < bins_.p; ++j) {
      if (bins_.n_bins(j) > 1) features.push_back(j);
    }
    return features;
  }

  std::size_t place_cells() {
    std::size_t size = 0;
    for (std::int32_t j : features_) {
      cells_at_[j] = size;
      size += static_cast<std::size_t>(bins_.n_bins(j)) * rows_.stride();
    }
    return size;
  }

  bool interrupted() {
    if (!stop_ && poll_()) stop_ = true;
    return stop_;
  }

  double* S_of(std::int32_t k) { return &statistics_[static_cast<std::size_t>(k) * rows_.d()]; }
  NodeSums sums_of(std::int32_t k) { return {S_of(k), nodes_[k].phi, nodes_[k].count, nodes_[k].tolerance}; }

  std::int32_t add_node(std::int64_t begin, std::int64_t end, std::int32_t depth) {
    const auto k = static_cast<std::int32_t>(nodes_.size());
    nodes_.push_back({begin, end, depth});
    statistics_.resize(statistics_.size() + rows_.d());
    double* S = S_of(k);
    std::int64_t count = 0;
    for (std::int64_t at = begin; at < end; ++at) {
      rows_.add_row(partition_[at], S);
      count += copies_[partition_[at]];
    }
    nodes_[k].count = static_cast<double>(count);
    nodes_[k].phi = impurity_.phi(S);
    nodes_[k].tolerance = kRounding * impurity_.magnitude(S);
    return k;
  }

  bool is_open(std::int32_t k) const {
    const GrowingNode& node = nodes_[k];
    return node.depth < limits_.max_depth && node.size() > 1 && node.count >= limits_.min_samples_split &&
           node.count >= 2 * limits_.min_samples_leaf && (Impurity::kSplitsPure || node.phi > node.tolerance);
  }

  void enqueue(std::int32_t k) {
    GrowingNode& node = nodes_[k];
    const bool found = node.cut.feature >= 0;
    const bool has_large_children = node.depth + 1 < limits_.max_depth && node.size() > kSmallNode;
    if (!found || !has_large_children) pool_.release(node.slot);
    if (found) frontier_.push(node.cut.gain, k);
  }

  void split(std::int32_t parent, bool more) {
    const std::int64_t middle = part(nodes_[parent]);
    const GrowingNode node = nodes_[parent];  // by value: add_node moves the nodes
    const std::int32_t left = add_node(node.begin, middle, node.depth + 1);
    const std::int32_t right = add_node(middle, node.end, node.depth + 1);
    nodes_[parent].first_child = left;
    const bool open[2] = {more && is_open(left), more && is_open(right)};
    const bool left_is_larger = nodes_[left].size() > nodes_[right].size();
    const std::int32_t larger = left_is_larger ? left : right, smaller = left_is_larger ? right : left;
    nodes_[smaller].slot = can_share(parent, larger, open[larger - left]) ? pool_.acquire() : -1;
    if (nodes_[smaller].slot >= 0) {
      nodes_[larger].slot = std::exchange(nodes_[parent].slot, -1);
      search_pair(smaller, larger);
    } else {
      pool_.release(nodes_[parent].slot);
      for (std::int32_t child : {left, right}) {
        if (open[child - left]) search(child);
      }
    }
    for (std::int32_t child : {left, right}) {
      if (open[child - left])
        enqueue(child);
      else
        pool_.release(nodes_[child].slot);
    }
  }

  bool can_share(std::int32_t parent, std::int32_t larger, bool larger_is_open) const {
    return nodes_[parent].slot >= 0 && larger_is_open && nodes_[larger].size() > kSmallNode;
  }

  // Puts the rows of child 0 before those of child 1, each in the order they had; returns where child 1 starts.
  std::int64_t part(const GrowingNode& node) {
    const std::uint8_t* column = bins_.column(node.cut.feature);
    std::int32_t *left = &partition_[node.begin], *right = spare_.data();
    for (std::int64_t at = node.begin; at < node.end; ++at) {
      const std::int32_t i = partition_[at];
      const bool goes_right = node.cut.right(column[i]);
      *left = *right = i;
      left += !goes_right;
      right += goes_right;
    }
    std::copy(spare_.data(), right, left);
    return left - partition_.data();
  }

  void search(std::int32_t k) {
    GrowingNode& node = nodes_[k];
    rows_.gather(&partition_[node.begin], node.size(), gathered_);
    if (node.size() > kSmallNode) node.slot = pool_.acquire();
    if (node.slot < 0) {
      search_marked(k);
    } else {
      search_whole(k);
    }
  }

  // Runs body(first, stop, member) over blocks of features; many threads only where there is work for them.
  template <class Body>
  void each_block(std::int64_t n, const Body& body) {
    const std::int64_t n_features = static_cast<std::int64_t>(features_.size());
    const std::int64_t n_blocks = (n_features + kFeatureBlock - 1) / kFeatureBlock, work = n * n_features;
    auto visit = [&](std::size_t block, int member) {
      if (member == 0 && work > (1 << 20) && poll_()) stop_ = true;
      if (stop_) return;
      const std::int64_t first = block * kFeatureBlock;
      body(first, std::min(n_features, first + kFeatureBlock), member);
    };
    if (work >= kMinParallel) {
      team_.run(n_blocks, visit);
    } else {
      for (std::int64_t block = 0; block < n_blocks; ++block) visit(block, 0);
    }
  }

  // Without a histogram: the cells of one feature at a time, and only the bins that were marked.
  void search_marked(std::int32_t k) {
    const NodeSums sums = sums_of(k);
    each_block(nodes_[k].size(), [&](std::int64_t first, std::int64_t stop, int member) {
      for (std::int64_t at = first; at < stop; ++at) cuts_[at] = marked_cut(nodes_[k], sums, features_[at], member);
    });
    nodes_[k].cut = best_of(cuts_.data(), sums);
  }

  Cut marked_cut(const GrowingNode& node, const NodeSums& sums, std::int32_t feature, int member) {
    const std::uint8_t* column = bins_.column(feature);
    const std::int32_t* row = &partition_[node.begin];
    double* cells = workers_[member].cells.data();
    const int stride = rows_.stride();
    std::uint64_t marks[kCodes / 64] = {};
    for (std::int64_t k = 0; k < node.size(); ++k) {
      const std::uint8_t code = column[row[k]];
      marks[code >> 6] |= std::uint64_t(1) << (code & 63);
      rows_.add(gathered_, k, cells + code * stride);
    }
    std::int32_t listed[kCodes];
    int n_listed = 0;
    for (int word = 0; word < kCodes / 64; ++word) {
      for (std::uint64_t rest = marks[word]; rest; rest &= rest - 1) {
        listed[n_listed++] = 64 * word + std::countr_zero(rest);
      }
    }
    const Cut cut = workers_[member].scan.best(sums, feature, cells, listed, n_listed);
    for (int at = 0; at < n_listed; ++at) std::fill_n(cells + listed[at] * stride, stride, 0.0);
    return cut;
  }

  void search_whole(std::int32_t k) {
    const NodeSums sums = sums_of(k);
    double* histogram = pool_.at(nodes_[k].slot);
    each_block(nodes_[k].size() + kCodes, [&](std::int64_t first, std::int64_t stop, int member) {
      fill(nodes_[k], histogram, first, stop);
      for (std::int64_t at = first; at < stop; ++at) cuts_[at] = whole_cut(sums, histogram, features_[at], member);
    });
    nodes_[k].cut = best_of(cuts_.data(), sums);
  }

  // The larger child's slot holds the parent's histogram, and loses the smaller child's.
  void search_pair(std::int32_t smaller, std::int32_t larger) {
    const NodeSums small_sums = sums_of(smaller), large_sums = sums_of(larger);
    const GrowingNode& node = nodes_[smaller];
    double *small = pool_.at(node.slot), *large = pool_.at(nodes_[larger].slot);
    Cut *small_cuts = cuts_.data(), *large_cuts = cuts_.data() + bins_.p;
    const bool small_is_open = is_open(smaller);
    rows_.gather(&partition_[node.begin], node.size(), gathered_);
    each_block(node.size() + kCodes, [&](std::int64_t first, std::int64_t stop, int member) {
      fill(node, small, first, stop);
      for (std::size_t c = cells_at_[features_[first]]; c < cells_end(stop); ++c) large[c] -= small[c];
      for (std::int64_t at = first; at < stop; ++at) {
        if (small_is_open) small_cuts[at] = whole_cut(small_sums, small, features_[at], member);
        large_cuts[at] = whole_cut(large_sums, large, features_[at], member);
      }
    });
    if (small_is_open) nodes_[smaller].cut = best_of(small_cuts, small_sums);
    nodes_[larger].cut = best_of(large_cuts, large_sums);
  }

  // One past the cells of the features before `stop`.
  std::size_t cells_end(std::int64_t stop) const {
    const std::int32_t last = features_[stop - 1];
    return cells_at_[last] + static_cast<std::size_t>(bins_.n_bins(last)) * rows_.stride();
  }

  void fill(const GrowingNode& node, double* histogram, std::int64_t first, std::int64_t stop) {
    const std::uint8_t* columns[kFeatureBlock];
    double* cells[kFeatureBlock];
    for (std::int64_t at = first; at < stop; ++at) {
      columns[at - first] = bins_.column(features_[at]);
      cells[at - first] = histogram + cells_at_[features_[at]];
    }
    std::fill(cells[0], histogram + cells_end(stop), 0.0);
    const std::int32_t* row = &partition_[node.begin];
    if (stop - first == kFeatureBlock) {
      add_to_cells<kFeatureBlock>(rows_, gathered_, row, node.size(), columns, cells);
    } else {
      for (int w = 0; w < stop - first; ++w) {
        add_to_cells<1>(rows_, gathered_, row, node.size(), columns + w, cells + w);
      }
    }
  }

  Cut whole_cut(const NodeSums& sums, const double* histogram, std::int32_t feature, int member) {
    const double* cells = histogram + cells_at_[feature];
    return workers_[member].scan.best(sums, feature, cells, every_bin_.data(), bins_.n_bins(feature));
  }

  // The first feature whose gain is the greatest up to rounding, if that is a gain at all.
  Cut best_of(const Cut* cuts, const NodeSums& sums) const {
    double most = sums.tolerance;
    for (std::size_t at = 0; at < features_.size(); ++at) most = std::max(most, cuts[at].gain);
    if (!(most > sums.tolerance) || most + sums.tolerance < limits_.min_decrease) return {};
    std::size_t at = 0;
    while (!(cuts[at].gain >= most - sums.tolerance)) ++at;
    return cuts[at];
  }

  // The nodes breadth first.
  GrownTree listed() {
    GrownTree tree;
    std::vector<std::int32_t> queue{0};
    for (std::size_t at = 0; at < queue.size(); ++at) {
      const GrowingNode& node = nodes_[queue[at]];
      const double* S = S_of(queue[at]);
      tree.statistics.insert(tree.statistics.end(), S, S + rows_.d());
      tree.arity.push_back(node.first_child ? 2 : 0);
      if (!node.first_child) continue;
      tree.feature.push_back(node.cut.feature);
      tree.bin.push_back(node.cut.bin);
      tree.threshold.push_back(bins_.threshold(node.cut));
      queue.push_back(node.first_child);
      queue.push_back(node.first_child + 1);
    }
    return tree;
  }

  const Binned& bins_;
  const Rows rows_;
  const std::int32_t* copies_;  // (n,)
  const Impurity impurity_;
  GrowLimits limits_;
  Team& team_;
  const Poll& poll_;
  std::atomic<bool> stop_{false};
  Frontier frontier_;
  std::vector<std::int32_t> features_;
  std::vector<std::size_t> cells_at_;  // (p,) where a feature's cells start in a histogram
  HistogramPool pool_;
  std::vector<std::int32_t> partition_, spare_;  // (n,)
  std::vector<Cut> cuts_;
  std::vector<GrowingNode> nodes_;
  std::vector<double> statistics_;  // (nodes, d)
  typename Rows::Gathered gathered_;
  std::array<std::int32_t, kCodes> every_bin_;
  std::vector<Worker> workers_;
};

}  // namespace softwood
