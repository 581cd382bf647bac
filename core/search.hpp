// Exact local search on the hard global impurity J = sum over leaves of phi(S_leaf) of a tree of threshold questions.
//
// Recut: the best question of one node while the subtrees below it stay as they are. Each row of the node would end in
// one leaf through child 0 and in one through child 1; one scan over the bins of a feature moves rows from the second
// to the first and keeps J up to date, leaves refitted inside the scan. A node whose rows and subtree have not changed
// since its last scan is not scanned again. Search: recut every node until none gains (coordinate descent); then, round
// by round, draw one question at random, grow what is below it anew, recut, and keep the tree if it is not worse.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "grow.hpp"

namespace softwood {

struct SearchNode {
  std::int32_t feature = -1;  // -1: a leaf
  std::int32_t bin = 0;       // the last bin of child 0
  std::int32_t first_child = 0, parent = -1, depth = 0;
  std::int64_t begin = 0, end = 0;  // its rows, in the partition
  double count = 0;                 // the caller's rows
  double J = 0;                     // of the leaves below it
  bool is_stale = true;             // whether its question, or being a leaf, may not be the best any more

  bool is_leaf() const { return feature < 0; }
  std::int64_t size() const { return end - begin; }
  bool right(std::uint8_t code) const { return code > bin; }
};

// Breadth first, children side by side.
struct SearchTree {
  std::vector<SearchNode> nodes;
  std::vector<std::int32_t> partition;  // (n,) rows, those of a node next to each other

  const std::int32_t* rows(const SearchNode& node) const { return &partition[node.begin]; }
  std::int64_t n_leaves() const {
    return std::count_if(nodes.begin(), nodes.end(), [](const SearchNode& node) { return node.is_leaf(); });
  }
};

// A question given to search from, by node; feature -1 is a leaf.
struct Question {
  std::int32_t feature, bin;
};

// Three random numbers of one round: which level and node of it, which feature, which of the node's rows.
struct Draw {
  std::uint64_t node, feature, row;
};

constexpr double kImpossible = std::numeric_limits<double>::infinity();

// Statistics of some leaves while rows move between them.
template <class Impurity, class Rows>
class MovingLeaves {
 public:
  MovingLeaves(const Impurity& impurity, const Rows& rows, const std::int32_t* copies, double min_leaf)
      : impurity_(impurity), rows_(rows), copies_(copies), min_leaf_(min_leaf) {}

  void clear(std::int32_t n_leaves) {
    S_.assign(static_cast<std::size_t>(n_leaves) * rows_.d(), 0.0);
    phi_.assign(n_leaves, 0.0);
    count_.assign(n_leaves, 0);
    is_thin_.assign(n_leaves, 0);
    marks_.assign((n_leaves + 63) / 64, 0);
    J_ = 0;
    n_thin_ = 0;
  }
  void add(std::int32_t row, std::int32_t leaf) {
    rows_.add_row(row, S_of(leaf));
    count_[leaf] += copies_[row];
    mark(leaf);
  }
  void move(std::int32_t row, std::int32_t from, std::int32_t to) {
    rows_.take_row(row, S_of(from));
    count_[from] -= copies_[row];
    mark(from);
    add(row, to);
  }
  // J of all leaves; infinite where one of them holds rows, but too few.
  double settle() {
    for (std::size_t word = 0; word < marks_.size(); ++word) {
      for (std::uint64_t rest = marks_[word]; rest; rest &= rest - 1) refit(64 * word + std::countr_zero(rest));
      marks_[word] = 0;
    }
    return n_thin_ ? kImpossible : J_;
  }

 private:
  double* S_of(std::size_t leaf) { return &S_[leaf * rows_.d()]; }
  void mark(std::int32_t leaf) { marks_[leaf >> 6] |= std::uint64_t(1) << (leaf & 63); }
  void refit(std::size_t leaf) {
    double* S = S_of(leaf);
    if (count_[leaf] == 0) std::fill_n(S, rows_.d(), 0.0);  // what rounding left of rows that went
    const double phi = count_[leaf] == 0 ? 0.0 : impurity_.phi(S);
    const bool is_thin = count_[leaf] > 0 && count_[leaf] < min_leaf_;
    J_ += phi - phi_[leaf];
    phi_[leaf] = phi;
    n_thin_ += is_thin - is_thin_[leaf];
    is_thin_[leaf] = is_thin;
  }

  Impurity impurity_;
  Rows rows_;
  const std::int32_t* copies_;
  double min_leaf_;
  std::vector<double> S_, phi_;
  std::vector<std::int64_t> count_;
  std::vector<std::uint8_t> is_thin_;
  std::vector<std::uint64_t> marks_;  // leaves whose phi is out of date
  double J_ = 0;
  int n_thin_ = 0;
};

// The best question of a node above subtrees that stay.
template <class Impurity, class Rows>
class Recut {
 public:
  Recut(const Binned& bins, const Rows& rows, const std::int32_t* copies, const Impurity& impurity, double min_leaf,
        Team& team)
      : bins_(bins), team_(team), all_right_(impurity, rows, copies, min_leaf), cuts_(bins.p) {
    for (std::int32_t j = 0; j < bins.p; ++j) {
      if (bins.n_bins(j) > 1) features_.push_back(j);
    }
    for (int member = 0; member < team.size(); ++member) workers_.push_back({all_right_, {}, {}});
  }

  // Costs closer than `tolerance` are equal, and the first feature and bin win. Cut::gain is minus the cost.
  Cut best(const SearchTree& tree, std::int32_t k, double tolerance) {
    const SearchNode& node = tree.nodes[k];
    place(tree, node);
    auto scan = [&](std::size_t at, int member) {
      cuts_[at] = scan_feature(tree, node, features_[at], tolerance, workers_[member]);
    };
    if (node.size() * static_cast<std::int64_t>(features_.size()) >= kMinParallel) {
      team_.run(features_.size(), scan);
    } else {
      for (std::size_t at = 0; at < features_.size(); ++at) scan(at, 0);
    }
    Cut best;
    for (std::size_t at = 0; at < features_.size(); ++at) best.gain = std::max(best.gain, cuts_[at].gain);
    for (std::size_t at = 0; at < features_.size(); ++at) {
      if (cuts_[at].feature >= 0 && cuts_[at].gain >= best.gain - tolerance) return cuts_[at];
    }
    return {};
  }

 private:
  struct Worker {
    MovingLeaves<Impurity, Rows> leaves;
    std::vector<std::int32_t> order;  // places of the node's rows, bin by bin
    std::vector<double> costs;        // of cutting behind each bin
  };

  // Which leaf each row would end in through either child, and the leaves when all rows take child 1.
  void place(const SearchTree& tree, const SearchNode& node) {
    number_.resize(tree.nodes.size());
    for (auto& through : through_) through.resize(node.size());
    std::int32_t n_leaves = 0;
    std::vector<std::int32_t> waiting{node.first_child, node.first_child + 1};
    while (!waiting.empty()) {
      const std::int32_t at = waiting.back();
      waiting.pop_back();
      if (tree.nodes[at].is_leaf()) {
        number_[at] = n_leaves++;
      } else {
        waiting.insert(waiting.end(), {tree.nodes[at].first_child, tree.nodes[at].first_child + 1});
      }
    }
    all_right_.clear(n_leaves);
    for (std::int64_t at = 0; at < node.size(); ++at) {
      const std::int32_t row = tree.rows(node)[at];
      for (int child = 0; child < 2; ++child) through_[child][at] = leaf_below(tree, node.first_child + child, row);
      all_right_.add(row, through_[1][at]);
    }
    all_right_.settle();
  }

  std::int32_t leaf_below(const SearchTree& tree, std::int32_t k, std::int32_t row) const {
    while (!tree.nodes[k].is_leaf()) {
      const SearchNode& node = tree.nodes[k];
      k = node.first_child + node.right(bins_.column(node.feature)[row]);
    }
    return number_[k];
  }

  Cut scan_feature(const SearchTree& tree, const SearchNode& node, std::int32_t feature, double tolerance,
                   Worker& worker) {
    const std::int32_t* rows = tree.rows(node);
    std::int64_t stops[kCodes + 1];
    sort_by_code(rows, node.size(), bins_.column(feature), stops, worker.order);
    worker.leaves = all_right_;
    worker.costs.assign(kCodes, kImpossible);
    double least = kImpossible;
    std::int64_t at = 0;
    for (int bin = 0; bin < bins_.n_bins(feature); ++bin) {
      if (at == stops[bin] || stops[bin] == node.size()) continue;  // no row in it, or none behind it
      for (; at < stops[bin]; ++at) {
        const std::int32_t place = worker.order[at];
        worker.leaves.move(rows[place], through_[1][place], through_[0][place]);
      }
      least = std::min(least, worker.costs[bin] = worker.leaves.settle());
    }
    if (!(least < kImpossible)) return {};
    int bin = 0;
    while (!(worker.costs[bin] <= least + tolerance)) ++bin;
    return {-least, feature, bin, bin + 1};
  }

  // Counting sort: order[0 .. stops[0]) have code 0, order[stops[0] .. stops[1]) code 1, and so on.
  static void sort_by_code(const std::int32_t* rows, std::int64_t n, const std::uint8_t* column, std::int64_t* stops,
                           std::vector<std::int32_t>& order) {
    order.resize(n);
    std::fill_n(stops, kCodes + 1, 0);
    for (std::int64_t at = 0; at < n; ++at) ++stops[column[rows[at]] + 1];
    std::partial_sum(stops, stops + kCodes + 1, stops);
    for (std::int64_t at = 0; at < n; ++at) order[stops[column[rows[at]]]++] = static_cast<std::int32_t>(at);
  }

  const Binned& bins_;
  Team& team_;
  std::vector<std::int32_t> features_;
  MovingLeaves<Impurity, Rows> all_right_;
  std::vector<Worker> workers_;
  std::vector<Cut> cuts_;
  std::vector<std::int32_t> number_;      // (nodes,) of the leaves below the node
  std::vector<std::int32_t> through_[2];  // (rows of the node,) the leaf through child 0, through child 1
};

template <class Impurity, class Rows>
class Search {
 public:
  Search(const Binned& bins, const Rows& rows, const std::int32_t* copies, const Impurity& impurity, bool counted,
         const GrowLimits& limits, Team& team, const Poll& poll)
      : bins_(bins),
        rows_(rows),
        copies_(copies),
        impurity_(impurity),
        limits_(limits),
        poll_(poll),
        grower_(bins, rows, copies, impurity, counted, limits, team, poll),
        recut_(bins, rows, copies, impurity, limits.min_samples_leaf, team),
        spare_(bins.n) {}

  // `history` receives J after coordinate descent and after each round.
  GrownTree run(const std::vector<Question>& questions, const std::vector<Draw>& draws, double* history) {
    SearchTree best = planted(questions);
    settle(best);
    *history = best.nodes[0].J;
    sum_up(best, best.nodes[0], S_);
    const double tolerance = kRounding * impurity_.magnitude(S_.data());
    for (const Draw& draw : draws) {
      if (poll_()) break;
      SearchTree tree = best;
      if (redraw(tree, draw)) settle(tree);
      if (tree.nodes[0].J <= best.nodes[0].J + tolerance) best = std::move(tree);
      *++history = best.nodes[0].J;
    }
    return listed(best);
  }

 private:
  SearchTree planted(const std::vector<Question>& questions) {
    SearchTree tree;
    tree.partition.resize(bins_.n);
    std::iota(tree.partition.begin(), tree.partition.end(), 0);
    std::int32_t next = 1;
    tree.nodes.resize(questions.size());
    for (std::size_t k = 0; k < questions.size(); ++k) {
      tree.nodes[k].feature = questions[k].feature;
      tree.nodes[k].bin = questions[k].bin;
      if (tree.nodes[k].is_leaf()) continue;
      tree.nodes[k].first_child = next;
      next += 2;
    }
    tree.nodes[0].end = bins_.n;
    part(tree, 0);
    renumber(tree);
    return tree;
  }

  // Hands the rows of a node down to its leaves and takes the costs.
  void part(SearchTree& tree, std::int32_t k) {
    SearchNode& node = tree.nodes[k];
    std::int64_t count = 0;
    for (std::int64_t at = node.begin; at < node.end; ++at) count += copies_[tree.partition[at]];
    node.count = static_cast<double>(count);
    node.is_stale = true;
    if (node.is_leaf()) {
      node.J = phi_of(tree, node);
      return;
    }
    SearchNode *left = &tree.nodes[node.first_child], *right = left + 1;
    left->begin = node.begin;
    left->end = right->begin = divide(tree, node);
    right->end = node.end;
    if (left->size() > 0 && right->size() > 0) centre(tree, node);
    part(tree, node.first_child);
    part(tree, node.first_child + 1);
    node.J = left->J + right->J;
  }

  // The same question of the node's own rows, as its threshold puts it to all others: midway between its rows.
  void centre(const SearchTree& tree, SearchNode& node) const {
    const double *first = bins_.high + bins_.offsets[node.feature], *end = first + bins_.n_bins(node.feature);
    node.bin = static_cast<std::int32_t>(std::upper_bound(first, end, bins_.threshold(tight(tree, node))) - first) - 1;
  }

  // A node's question with the bins next to it that the node has rows in: its threshold is between these.
  Cut tight(const SearchTree& tree, const SearchNode& node) const {
    const std::uint8_t* column = bins_.column(node.feature);
    Cut cut{0, node.feature, -1, kCodes};
    for (std::int64_t at = 0; at < node.size(); ++at) {
      const std::int32_t code = column[tree.rows(node)[at]];
      if (node.right(static_cast<std::uint8_t>(code))) {
        cut.next = std::min(cut.next, code);
      } else {
        cut.bin = std::max(cut.bin, code);
      }
    }
    return cut;
  }

  std::int64_t divide(SearchTree& tree, const SearchNode& node) {
    const std::uint8_t* column = bins_.column(node.feature);
    std::int32_t *left = &tree.partition[node.begin], *right = spare_.data();
    for (std::int64_t at = node.begin; at < node.end; ++at) {
      const std::int32_t row = tree.partition[at];
      const bool goes_right = node.right(column[row]);
      *left = *right = row;
      left += !goes_right;
      right += goes_right;
    }
    std::copy(spare_.data(), right, left);
    return left - tree.partition.data();
  }

  void sum_up(const SearchTree& tree, const SearchNode& node, std::vector<double>& S) const {
    S.assign(rows_.d(), 0.0);
    for (std::int64_t at = 0; at < node.size(); ++at) rows_.add_row(tree.rows(node)[at], S.data());
  }

  double phi_of(const SearchTree& tree, const SearchNode& node) {
    if (node.size() == 0) return 0;
    sum_up(tree, node, S_);
    return impurity_.phi(S_.data());
  }

  // Only the nodes that the root reaches, breadth first. A node with an empty child gives its place to the other.
  void renumber(SearchTree& tree) {
    std::vector<SearchNode> nodes{tree.nodes[0]};
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      while (!nodes[k].is_leaf()) {
        const SearchNode& left = tree.nodes[nodes[k].first_child];
        if (left.size() > 0 && left.size() < nodes[k].size()) break;
        const SearchNode& full = left.size() ? left : tree.nodes[nodes[k].first_child + 1];
        const std::int32_t parent = nodes[k].parent, depth = nodes[k].depth;
        nodes[k] = full;
        nodes[k].parent = parent;
        nodes[k].depth = depth;
      }
      if (nodes[k].is_leaf()) continue;
      const std::int32_t old = nodes[k].first_child, depth = nodes[k].depth + 1;
      nodes[k].first_child = static_cast<std::int32_t>(nodes.size());
      for (int child = 0; child < 2; ++child) {
        nodes.push_back(tree.nodes[old + child]);
        nodes.back().parent = static_cast<std::int32_t>(k);
        nodes.back().depth = depth;
      }
    }
    tree.nodes = std::move(nodes);
  }

  // Recuts stale nodes and grows stale leaves until nothing is stale.
  void settle(SearchTree& tree) {
    for (std::size_t k = 0; k < tree.nodes.size() && !poll_();) {
      if (!tree.nodes[k].is_stale) {
        ++k;
        continue;
      }
      tree.nodes[k].is_stale = false;
      const bool changed = tree.nodes[k].is_leaf() ? grow_out(tree, k) : recut(tree, k);
      k = changed ? 0 : k + 1;
    }
    collapse_small(tree);
  }

  // Nodes that other cuts left with too few rows to ask become leaves.
  void collapse_small(SearchTree& tree) {
    for (std::int32_t k = static_cast<std::int32_t>(tree.nodes.size()) - 1; k >= 0; --k) {
      if (tree.nodes[k].is_leaf() || tree.nodes[k].count >= limits_.min_samples_split) continue;
      tree.nodes[k].feature = -1;
      part(tree, k);
      carry_up(tree, k);
    }
    renumber(tree);
  }

  bool recut(SearchTree& tree, std::int32_t k) {
    const SearchNode before = tree.nodes[k];
    sum_up(tree, before, S_);
    const double tolerance = kRounding * impurity_.magnitude(S_.data());
    const Cut cut = recut_.best(tree, k, tolerance);
    if (cut.feature < 0 || !(-cut.gain < before.J - tolerance)) return false;
    return ask(tree, k, cut, before);
  }

  // Gives a node its new question if that is better as computed anew, and not by rounding in the scan.
  bool ask(SearchTree& tree, std::int32_t k, const Cut& cut, const SearchNode& before) {
    SearchTree tried = tree;
    tried.nodes[k].feature = cut.feature;
    tried.nodes[k].bin = cut.bin;
    part(tried, k);
    if (!(tried.nodes[k].J < before.J)) return false;
    tried.nodes[k].is_stale = false;
    carry_up(tried, k);
    renumber(tried);
    tree = std::move(tried);
    return true;
  }

  // The nodes above a changed one: their costs, and that they may be cut better now.
  void carry_up(SearchTree& tree, std::int32_t k) {
    for (std::int32_t at = tree.nodes[k].parent; at >= 0; at = tree.nodes[at].parent) {
      SearchNode& node = tree.nodes[at];
      node.J = tree.nodes[node.first_child].J + tree.nodes[node.first_child + 1].J;
      node.is_stale = true;
    }
  }

  bool grow_out(SearchTree& tree, std::int32_t k) {
    const SearchNode& leaf = tree.nodes[k];
    if (leaf.depth >= limits_.max_depth || leaf.count < limits_.min_samples_split || leaf.size() < 2) return false;
    return plant(tree, k, nullptr);
  }

  // Grows what is below a node anew; true if there is a question at all.
  bool plant(SearchTree& tree, std::int32_t k, const Cut* first) {
    const SearchNode node = tree.nodes[k];
    GrowLimits limits = limits_;
    limits.max_depth = limits_.max_depth - node.depth;
    limits.max_leaf_nodes =
        limits_.best_first ? limits_.max_leaf_nodes - tree.n_leaves() + leaves_below(tree, k) : limits_.max_leaf_nodes;
    const GrownTree grown = grower_.grow(tree.rows(node), node.size(), limits, first);
    if (grown.arity[0] == 0) return false;
    const std::int32_t first_new = static_cast<std::int32_t>(tree.nodes.size());
    std::int32_t next = first_new, asked = 0;
    for (std::size_t at = 0; at < grown.arity.size(); ++at) {
      if (at > 0) tree.nodes.emplace_back();
      SearchNode& here = at > 0 ? tree.nodes.back() : tree.nodes[k];
      here.feature = -1;
      if (!grown.arity[at]) continue;
      here.feature = grown.feature[asked];
      here.bin = grown.bin[asked++];
      here.first_child = next;
      next += 2;
    }
    part(tree, k);
    carry_up(tree, k);
    renumber(tree);
    return true;
  }

  std::int64_t leaves_below(const SearchTree& tree, std::int32_t k) const {
    const SearchNode& node = tree.nodes[k];
    return node.is_leaf() ? 1 : leaves_below(tree, node.first_child) + leaves_below(tree, node.first_child + 1);
  }

  // A question at random above the last level, and greedy growth below it.
  bool redraw(SearchTree& tree, const Draw& draw) {
    const std::int32_t k = drawn_node(tree, draw.node);
    if (k < 0) return false;
    Cut cut;
    cut.feature = static_cast<std::int32_t>(draw.feature % bins_.p);
    return draw_bin(tree, tree.nodes[k], draw.row, cut) && plant(tree, k, &cut);
  }

  // The bin of one of the node's rows that are not in the last; false where all are in one, or a side has too few.
  bool draw_bin(const SearchTree& tree, const SearchNode& node, std::uint64_t number, Cut& cut) const {
    std::array<std::int64_t, kCodes> rows{}, counts{};
    for (std::int64_t at = 0; at < node.size(); ++at) {
      const std::int32_t row = tree.rows(node)[at];
      const std::uint8_t code = bins_.column(cut.feature)[row];
      ++rows[code];
      counts[code] += copies_[row];
    }
    int last = kCodes - 1;
    while (!rows[last]) --last;
    if (rows[last] == node.size()) return false;
    std::int64_t rank = static_cast<std::int64_t>(number % (node.size() - rows[last]));
    double left = 0;
    for (cut.bin = 0; rank >= rows[cut.bin]; ++cut.bin) {
      rank -= rows[cut.bin];
      left += counts[cut.bin];
    }
    left += counts[cut.bin];
    return Allowed{std::max(1.0, limits_.min_samples_leaf)}(left, node.count);
  }

  // A node that asks, of a level drawn from all but the last that do; -1 where none does.
  std::int32_t drawn_node(const SearchTree& tree, std::uint64_t number) const {
    std::vector<std::int32_t> here;
    std::int32_t depth = 0;
    for (const SearchNode& node : tree.nodes) depth = std::max(depth, node.depth);
    if (depth == 0) return -1;
    const std::int32_t n_levels = std::max(1, depth - 1), level = static_cast<std::int32_t>(number % n_levels);
    for (std::size_t k = 0; k < tree.nodes.size(); ++k) {
      if (!tree.nodes[k].is_leaf() && tree.nodes[k].depth == level) here.push_back(static_cast<std::int32_t>(k));
    }
    return here[number / n_levels % here.size()];
  }

  GrownTree listed(const SearchTree& tree) {
    GrownTree out;
    for (const SearchNode& node : tree.nodes) {
      sum_up(tree, node, S_);
      out.statistics.insert(out.statistics.end(), S_.begin(), S_.end());
      out.arity.push_back(node.is_leaf() ? 0 : 2);
      if (node.is_leaf()) continue;
      out.feature.push_back(node.feature);
      out.threshold.push_back(bins_.threshold(tight(tree, node)));
    }
    return out;
  }

  const Binned& bins_;
  const Rows rows_;
  const std::int32_t* copies_;
  const Impurity impurity_;
  const GrowLimits limits_;
  const Poll& poll_;
  Grower<Impurity, Rows> grower_;
  Recut<Impurity, Rows> recut_;
  std::vector<std::int32_t> spare_;
  std::vector<double> S_;
};

}  // namespace softwood
