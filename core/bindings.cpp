// The only file that knows Python: it checks every length and index, lets go of the GIL, and calls a kernel.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "bins.hpp"
#include "descend.hpp"
#include "grow.hpp"
#include "parallel.hpp"
#include "route.hpp"
#include "rows.hpp"
#include "sample.hpp"
#include "search.hpp"

namespace nb = nanobind;
using namespace softwood;

namespace {

template <class T, int Dims>
using In = nb::ndarray<const T, nb::ndim<Dims>, nb::c_contig, nb::device::cpu>;
template <class T, int Dims>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<Dims>>;

void check(bool fact, const char* what) {
  if (!fact) throw std::invalid_argument(what);
}

// A fresh array owned by Python.
template <class T, int Dims>
Out<T, Dims> fresh(std::initializer_list<std::size_t> shape) {
  std::size_t size = 1;
  for (std::size_t side : shape) size *= side;
  T* data = new T[size ? size : 1]();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return Out<T, Dims>(data, shape, owner);
}

// Asks Python for pending signals, at most every 50 ms: a kernel may poll as often as it likes.
class Signals {
 public:
  Poll poll() {
    return [this] {
      if (caught_) return true;
      const auto now = std::chrono::steady_clock::now();
      if (now - last_ < std::chrono::milliseconds(50)) return false;
      last_ = now;
      nb::gil_scoped_acquire acquire;
      return caught_ = PyErr_CheckSignals() != 0;
    };
  }
  // With the GIL held: raises what the user's signal handler raised.
  void raise_caught() const {
    if (caught_) throw nb::python_error();
  }

 private:
  bool caught_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

template <class T>
Out<std::uint64_t, 1> py_row_hash(In<T, 2> X, int n_threads) {
  auto hash = fresh<std::uint64_t, 1>({X.shape(0)});
  nb::gil_scoped_release release;
  Team team(n_threads);
  row_hash(X.data(), X.shape(0), X.shape(1), hash.data(), team);
  return hash;
}

// A copy of a vector owned by Python.
template <class T>
Out<T, 1> array_of(const std::vector<T>& values) {
  auto array = fresh<T, 1>({values.size()});
  std::copy(values.begin(), values.end(), array.data());
  return array;
}

void check_order(const In<std::int64_t, 1>& order, std::size_t rows) {
  for (std::size_t i = 0; i < order.shape(0); ++i) {
    check(order.data()[i] >= 0 && order.data()[i] < static_cast<std::int64_t>(rows), "order names a row outside X");
  }
}

template <class T>
nb::tuple py_column_moments(In<T, 2> X, In<std::int64_t, 1> order, In<double, 1> weight, int n_threads) {
  check(order.shape(0) > 0 && order.shape(0) == weight.shape(0), "order and weight need one entry per row");
  check_order(order, X.shape(0));
  auto center = fresh<double, 1>({X.shape(1)}), scale = fresh<double, 1>({X.shape(1)});
  {
    nb::gil_scoped_release release;
    Team team(n_threads);
    column_moments(X.data(), order.data(), weight.data(), order.shape(0), X.shape(1), center.data(), scale.data(),
                   team);
  }
  return nb::make_tuple(center, scale);
}

template <class T>
Out<float, 2> py_standardise(In<T, 2> X, In<std::int64_t, 1> order, In<double, 1> center, In<double, 1> per_scale,
                             int n_threads) {
  check(center.shape(0) == X.shape(1) && per_scale.shape(0) == X.shape(1), "units need one entry per column");
  check_order(order, X.shape(0));
  auto Z = fresh<float, 2>({order.shape(0), X.shape(1)});
  nb::gil_scoped_release release;
  Team team(n_threads);
  standardise(X.data(), order.data(), order.shape(0), X.shape(1), center.data(), per_scale.data(), Z.data(), team);
  return Z;
}

// None where a number is not finite and check_finite asks for that.
template <class T>
std::optional<Out<std::int32_t, 1>> py_route(In<T, 2> X, In<std::int32_t, 1> first_child, In<std::int8_t, 1> kind,
                                             In<std::int32_t, 1> row, In<std::int32_t, 1> feature,
                                             In<double, 1> threshold, In<double, 2> weights, In<double, 1> bias,
                                             int n_threads, bool check_finite) {
  const std::size_t m = first_child.shape(0), p = X.shape(1);
  check(m > 0 && kind.shape(0) == m && row.shape(0) == m, "a tree needs one entry per node");
  check(feature.shape(0) == threshold.shape(0), "threshold questions need one threshold per feature");
  check(weights.shape(0) == bias.shape(0) && (bias.shape(0) == 0 || weights.shape(1) == p),
        "linear questions need one weight per column");
  for (std::size_t k = 0; k < m; ++k) {
    const std::int64_t first = first_child.data()[k], r = row.data()[k];
    if (first == 0) continue;
    const int table = kind.data()[k];
    check(first > static_cast<std::int64_t>(k) && first + 1 < static_cast<std::int64_t>(m),
          "a child is outside the tree");
    check(table == 0 || table == 1, "a question is of an unknown kind");
    check(r >= 0 && r < static_cast<std::int64_t>(table == 0 ? feature.shape(0) : bias.shape(0)),
          "a question is outside its table");
  }
  for (std::size_t k = 0; k < feature.shape(0); ++k) {
    check(feature.data()[k] >= 0 && feature.data()[k] < static_cast<std::int64_t>(p), "a feature is outside X");
  }
  auto leaf = fresh<std::int32_t, 1>({X.shape(0)});
  bool answered = false;
  {
    nb::gil_scoped_release release;
    Team team(n_threads);
    const HardTree tree{first_child.data(), kind.data(),    row.data(), feature.data(),
                        threshold.data(),   weights.data(), bias.data()};
    const RoutePlan plan(tree, m, bias.shape(0), X.shape(0), p);
    answered = route(plan, X.data(), X.shape(0), check_finite, leaf.data(), team);
  }
  if (!answered) return std::nullopt;
  return leaf;
}

using Codes = std::optional<In<std::int32_t, 1>>;
using Statistics = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

SoftRows checked_rows(const In<float, 2>& Z, const Codes& codes, const Statistics& s, std::int64_t d) {
  const std::size_t n = Z.shape(0);
  check(d > 0, "statistics need at least one number per row");
  check(Z.shape(1) > 0, "Z needs at least one column");
  if (!codes) {
    check(s.ndim() == 2 && s.shape(0) == n && static_cast<std::int64_t>(s.shape(1)) == d, "s must be (rows, d)");
    return {Z.data(), nullptr, s.data(), static_cast<std::int64_t>(n), static_cast<std::int64_t>(Z.shape(1)), d};
  }
  check(s.ndim() == 1 && s.shape(0) == n && codes->shape(0) == n, "codes and weights need one entry per row");
  for (std::size_t i = 0; i < n; ++i) check(codes->data()[i] >= 0 && codes->data()[i] < d, "a code is outside 0..d-1");
  return {Z.data(), codes->data(), s.data(), static_cast<std::int64_t>(n), static_cast<std::int64_t>(Z.shape(1)), d};
}

SoftShape checked_shape(const In<std::int32_t, 1>& first_child, std::size_t n_parameters, std::int64_t p) {
  const std::int64_t m = first_child.shape(0);
  std::int64_t next = 1;
  for (std::int64_t k = 0; k < m; ++k) {
    const std::int32_t first = first_child.data()[k];
    check(first == 0 || (first == next && first > k && first + 1 < m), "a soft tree needs two children per question");
    if (first) next += 2;
  }
  check(m > 1 && next == m, "a soft tree needs at least one question and no stray nodes");
  SoftShape shape = SoftShape::of(first_child.data(), m);
  check(static_cast<std::int64_t>(n_parameters) == shape.n_internal * (p + 1), "theta must be (questions, p + 1)");
  return shape;
}

ImpurityChoice checked_impurity(const std::string& name, double reg_lambda, std::int64_t d) {
  if (name == "gini") return {Impurity::kGini, 0};
  if (name == "entropy") return {Impurity::kEntropy, 0};
  check(name != "variance" || d == 3, "variance needs s of three numbers");
  if (name == "variance") return {Impurity::kVariance, 0};
  check(name == "newton" && d % 2 == 0, "impurity must be gini, entropy, variance or newton (even d)");
  return {Impurity::kNewton, reg_lambda};
}

template <class T>
using InOut = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::tuple py_descend(InOut<float> theta, InOut<float> mean, InOut<float> square, std::int64_t step,
                     In<std::int32_t, 2> batches, In<float, 1> rates, float decay, float beta1, float beta2,
                     float epsilon, In<float, 2> Z, Codes codes, Statistics s, std::int64_t d,
                     In<std::int32_t, 1> first_child, In<std::int32_t, 1> rank,
                     nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig> leaf_of, float tolerance,
                     std::string impurity, double reg_lambda, int n_threads) {
  const SoftRows rows = checked_rows(Z, codes, s, d);
  const SoftShape shape = checked_shape(first_child, theta.shape(0), rows.p);
  const ImpurityChoice choice = checked_impurity(impurity, reg_lambda, d);
  check(mean.shape(0) == theta.shape(0) && square.shape(0) == theta.shape(0), "Adam's memory must match theta");
  check(batches.shape(0) == rates.shape(0) && batches.shape(1) > 0, "one rate per batch, at least one row per batch");
  for (std::size_t i = 0; i < batches.size(); ++i) {
    check(batches.data()[i] >= 0 && batches.data()[i] < rows.n, "a batch names a row outside the data");
  }
  check(static_cast<std::int64_t>(rank.shape(0)) == shape.n_leaves, "one rank per leaf");
  for (std::int32_t k = 0; k < shape.n_leaves; ++k) {
    check(rank.data()[k] >= 0 && rank.data()[k] < shape.n_leaves, "a rank is outside the leaves");
  }
  check(static_cast<std::int64_t>(leaf_of.shape(0)) == rows.n, "one leaf per row");
  for (std::int64_t i = 0; i < rows.n; ++i) {
    check(leaf_of.data()[i] >= 0 && leaf_of.data()[i] < shape.n_leaves, "a row's leaf is outside the leaves");
  }
  auto objective = fresh<double, 1>({rates.shape(0)});
  Signals signals;
  double share = 1;
  {
    nb::gil_scoped_release release;
    Team team(n_threads, Subnormals::kFlushed);
    const Adam adam{beta1, beta2, epsilon};
    Descent descent(shape, rows, choice, adam, decay);
    AdamState state{mean.data(), square.data(), step};
    const Plan plan{batches.data(),
                    rates.data(),
                    static_cast<std::int64_t>(rates.shape(0)),
                    static_cast<std::int64_t>(batches.shape(1)),
                    tolerance,
                    rank.data(),
                    leaf_of.data()};
    share = descend(descent, plan, theta.data(), state, objective.data(), team, signals.poll());
  }
  signals.raise_caught();
  return nb::make_tuple(objective, share);
}

Out<double, 1> py_sample_descend(InOut<float> theta, InOut<float> mean, InOut<float> square, std::int64_t step,
                                 In<std::int32_t, 2> batches, In<float, 1> rates, float decay, float beta1, float beta2,
                                 float epsilon, In<float, 2> Z, Codes codes, Statistics s, std::int64_t d,
                                 In<std::int32_t, 1> first_child, std::int64_t n_draws, std::uint64_t seed,
                                 std::string impurity, double reg_lambda, int n_threads) {
  const SoftRows rows = checked_rows(Z, codes, s, d);
  const SoftShape shape = checked_shape(first_child, theta.shape(0), rows.p);
  const ImpurityChoice choice = checked_impurity(impurity, reg_lambda, d);
  check(mean.shape(0) == theta.shape(0) && square.shape(0) == theta.shape(0), "Adam's memory must match theta");
  check(batches.shape(0) == rates.shape(0) && batches.shape(1) > 0, "one rate per batch, at least one row per batch");
  for (std::size_t i = 0; i < batches.size(); ++i) {
    check(batches.data()[i] >= 0 && batches.data()[i] < rows.n, "a batch names a row outside the data");
  }
  const std::int64_t count = batches.shape(1);
  check(n_draws >= 1 && n_draws < (std::int64_t(1) << 24), "n_draws must be from 1 to 2^24 - 1");
  check(count * n_draws < (std::int64_t(1) << 31) / shape.n_internal, "a batch has too many walks for a tree so large");
  auto objective = fresh<double, 1>({rates.shape(0)});
  Signals signals;
  {
    nb::gil_scoped_release release;
    Team team(n_threads, Subnormals::kFlushed);
    const Adam adam{beta1, beta2, epsilon};
    AdamState state{mean.data(), square.data(), step};
    Sampler sampler(shape, rows, choice, count, n_draws, team);
    const Poll interrupted = signals.poll();
    for (std::size_t k = 0; k < rates.shape(0) && !interrupted(); ++k) {
      const std::int32_t* batch = batches.data() + k * count;
      objective.data()[k] = sampler.step(batch, count, seed, rates.data()[k], decay, adam, theta.data(), state);
    }
  }
  signals.raise_caught();
  return objective;
}

Out<double, 2> py_leaf_sums(In<float, 1> theta, In<float, 2> Z, Codes codes, Statistics s, std::int64_t d,
                            In<std::int32_t, 1> first_child, int n_threads) {
  const SoftRows rows = checked_rows(Z, codes, s, d);
  const SoftShape shape = checked_shape(first_child, theta.shape(0), rows.p);
  auto S = fresh<double, 2>({static_cast<std::size_t>(shape.n_leaves), static_cast<std::size_t>(d)});
  Signals signals;
  {
    nb::gil_scoped_release release;
    Team team(n_threads, Subnormals::kFlushed);
    leaf_sums(shape, rows, theta.data(), S.data(), team, signals.poll());
  }
  signals.raise_caught();
  return S;
}

Out<double, 1> py_gradient(In<float, 1> theta, In<float, 2> slope, In<float, 2> Z, Codes codes, Statistics s,
                           std::int64_t d, In<std::int32_t, 1> first_child, int n_threads) {
  const SoftRows rows = checked_rows(Z, codes, s, d);
  const SoftShape shape = checked_shape(first_child, theta.shape(0), rows.p);
  check(static_cast<std::int64_t>(slope.shape(0)) == shape.n_leaves && static_cast<std::int64_t>(slope.shape(1)) == d,
        "slope must be (leaves, d)");
  auto theta_bar = fresh<double, 1>({theta.shape(0)});
  Signals signals;
  {
    nb::gil_scoped_release release;
    Team team(n_threads, Subnormals::kFlushed);
    gradient(shape, rows, theta.data(), slope.data(), theta_bar.data(), team, signals.poll());
  }
  signals.raise_caught();
  return theta_bar;
}

template <class T>
nb::tuple py_make_bins(In<T, 2> X, In<std::int64_t, 1> order, In<double, 1> weight, int max_bins, int n_threads) {
  const std::size_t n = order.shape(0), p = X.shape(1);
  check(n > 0 && weight.shape(0) == n, "order and weight need one entry per row");
  check(n < (std::size_t(1) << 31), "bins hold fewer than 2^31 rows");
  check(max_bins >= 2 && max_bins <= kMaxBins, "max_bins must be between 2 and 255");
  check_order(order, X.shape(0));
  auto codes = fresh<std::uint8_t, 2>({p, n});
  std::vector<double> low(p * max_bins), high(p * max_bins);
  std::vector<std::int32_t> n_bins(p);
  Signals signals;
  {
    nb::gil_scoped_release release;
    const double* w = weight.data();
    const bool equal = std::all_of(w, w + n, [&](double other) { return other == w[0]; });
    Team team(n * p < kMinParallel ? 1 : n_threads);
    const BinnedColumns<T> data{X.data(), order.data(), w, static_cast<std::int64_t>(n), static_cast<std::int64_t>(p),
                                max_bins, equal};
    make_bins(data, low.data(), high.data(), n_bins.data(), codes.data(), team, signals.poll());
  }
  signals.raise_caught();
  std::vector<std::int64_t> offsets{0};
  std::vector<double> lows, highs;
  for (std::size_t j = 0; j < p; ++j) {
    const std::size_t start = j * max_bins, stop = start + n_bins[j];
    lows.insert(lows.end(), low.begin() + start, low.begin() + stop);
    highs.insert(highs.end(), high.begin() + start, high.begin() + stop);
    offsets.push_back(lows.size());
  }
  return nb::make_tuple(codes, array_of(offsets), array_of(lows), array_of(highs));
}

void py_shuffle(InOut<std::int32_t> numbers, std::int64_t drawn, std::uint64_t seed) {
  const std::int64_t n = static_cast<std::int64_t>(numbers.shape(0));
  check(n < std::numeric_limits<std::int32_t>::max(), "numbers must be fewer than 2^31");
  check(drawn >= 0 && drawn <= n, "drawn must be from 0 to the count of the numbers");
  nb::gil_scoped_release release;
  shuffle(numbers.data(), n, drawn, seed);
}

// What both encodings of the targets share when a tree is grown.
struct GrowCall {
  In<std::uint8_t, 2> codes;
  In<std::int64_t, 1> offsets;
  In<double, 1> low, high;
  In<std::int32_t, 1> copies;
  std::string impurity;
  double parameter;
  GrowLimits limits;
  int n_threads;

  std::size_t n() const { return codes.shape(1); }
  std::size_t p() const { return codes.shape(0); }

  void check_all() const {
    check(n() > 0 && n() < (std::size_t(1) << 31), "codes need between 1 and 2^31 rows");
    check(copies.shape(0) == n(), "copies need one entry per row");
    check(offsets.shape(0) == p() + 1 && offsets.data()[0] == 0, "offsets need one entry per column and one more");
    check(low.shape(0) == high.shape(0), "bins need a low and a high value each");
    check(offsets.data()[p()] == static_cast<std::int64_t>(low.shape(0)), "offsets must end with the number of bins");
    for (std::size_t j = 0; j < p(); ++j) {
      const std::int64_t n_bins = offsets.data()[j + 1] - offsets.data()[j];
      check(n_bins >= 1 && n_bins <= kCodes, "a column needs between 1 and 256 bins");
      const std::uint8_t* column = codes.data() + j * n();
      check(*std::max_element(column, column + n()) < n_bins, "a code is outside its column's bins");
    }
    check(*std::min_element(copies.data(), copies.data() + n()) >= 1, "every row stands for at least one");
  }
};

// (max_depth, max_leaf_nodes, min_samples_split, min_samples_leaf, min_decrease); -1 stands for no limit.
GrowLimits limits_of(const nb::tuple& limits) {
  check(limits.size() == 5, "limits need five numbers");
  const auto whole = [&](int at) { return nb::cast<std::int64_t>(limits[at]); };
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  const std::int64_t depth = whole(0), leaves = whole(1);
  return {depth < 0 ? kNone : depth,   leaves < 0 ? kNone : leaves, leaves >= 0,
          nb::cast<double>(limits[2]), nb::cast<double>(limits[3]), nb::cast<double>(limits[4])};
}

Binned binned_of(const GrowCall& call) {
  return {call.codes.data(),
          call.offsets.data(),
          call.low.data(),
          call.high.data(),
          static_cast<std::int64_t>(call.n()),
          static_cast<std::int64_t>(call.p())};
}

nb::tuple tuple_of(const GrownTree& tree) {
  return nb::make_tuple(array_of(tree.arity), array_of(tree.feature), array_of(tree.threshold),
                        array_of(tree.statistics));
}

// Greedy growth, for any impurity and encoding.
struct GrowTask {
  const GrowCall& call;

  template <class Impurity, class Rows>
  nb::tuple operator()(const Impurity& impurity, const Rows& rows, bool counted) const {
    GrownTree tree;
    Signals signals;
    {
      nb::gil_scoped_release release;
      const Binned bins = binned_of(call);
      Team team(call.n() * call.p() < 4 * kMinParallel ? 1 : call.n_threads);
      const Poll poll = signals.poll();
      tree = Grower(bins, rows, call.copies.data(), impurity, counted, call.limits, team, poll).grow();
    }
    signals.raise_caught();
    return tuple_of(tree);
  }
};

// Local search from a tree, for any impurity and encoding.
struct SearchTask {
  const GrowCall& call;
  const std::vector<Question>& questions;
  const std::vector<Draw>& draws;

  template <class Impurity, class Rows>
  nb::tuple operator()(const Impurity& impurity, const Rows& rows, bool counted) const {
    GrownTree tree;
    auto history = fresh<double, 1>({draws.size() + 1});
    Signals signals;
    {
      nb::gil_scoped_release release;
      const Binned bins = binned_of(call);
      Team team(call.n() * call.p() < 4 * kMinParallel ? 1 : call.n_threads);
      const Poll poll = signals.poll();
      Search search(bins, rows, call.copies.data(), impurity, counted, call.limits, team, poll);
      tree = search.run(questions, draws, history.data());
    }
    signals.raise_caught();
    return nb::make_tuple(tuple_of(tree), history);
  }
};

template <template <int> class Impurity, int D, bool Counted, class Task>
nb::tuple with_counts(const Task& task, const std::int32_t* classes, const double* weights, int n_classes) {
  const CodedRows<D, Counted> rows{classes, weights, task.call.copies.data(), n_classes};
  return task(Impurity<D>{{n_classes}}, rows, Counted);
}

// Class counts: the common numbers of classes have code of their own.
template <template <int> class Impurity, bool Counted, class Task>
nb::tuple with_classes(const Task& task, const std::int32_t* classes, const double* weights, int n_classes) {
  if (n_classes == 2) return with_counts<Impurity, 2, Counted>(task, classes, weights, n_classes);
  if (n_classes == 3) return with_counts<Impurity, 3, Counted>(task, classes, weights, n_classes);
  return with_counts<Impurity, 0, Counted>(task, classes, weights, n_classes);
}

template <class Task>
nb::tuple with_coded(const Task& task, In<std::int32_t, 1> classes, In<double, 1> weights, int n_classes) {
  const GrowCall& call = task.call;
  call.check_all();
  const std::size_t n = call.n();
  check(classes.shape(0) == n && weights.shape(0) == n, "classes and weights need one entry per row");
  check(n_classes >= 1, "n_classes must be at least 1");
  bool counted = false;  // whether cells need a count of their own: not where a row's weight is its copies
  for (std::size_t i = 0; i < n; ++i) {
    check(classes.data()[i] >= 0 && classes.data()[i] < n_classes, "a class code is outside 0 .. n_classes - 1");
    counted |= weights.data()[i] != call.copies.data()[i];
  }
  const bool is_gini = call.impurity == "gini";
  check(is_gini || call.impurity == "entropy", "class codes go with the impurities gini and entropy");
  const std::int32_t* k = classes.data();
  const double* w = weights.data();
  if (is_gini && counted) return with_classes<Gini, true>(task, k, w, n_classes);
  if (is_gini) return with_classes<Gini, false>(task, k, w, n_classes);
  if (counted) return with_classes<Entropy, true>(task, k, w, n_classes);
  return with_classes<Entropy, false>(task, k, w, n_classes);
}

template <class Task>
nb::tuple with_dense(const Task& task, In<double, 2> s) {
  const GrowCall& call = task.call;
  call.check_all();
  const int d = static_cast<int>(s.shape(1));
  check(s.shape(0) == call.n() && d >= 1, "s needs one row per row and at least one column");
  const double* first = s.data();
  const std::int32_t* copy = call.copies.data();
  if (call.impurity == "gini") return task(Gini<0>{{d}}, DenseRows<0, true>{first, copy, d}, true);
  if (call.impurity == "entropy") return task(Entropy<0>{{d}}, DenseRows<0, true>{first, copy, d}, true);
  if (call.impurity == "variance") {
    check(d == 3, "variance needs three statistics per row: w, w y, w y^2");
    bool counted = false;
    for (std::size_t i = 0; i < call.n(); ++i) counted |= first[3 * i] != copy[i];
    if (counted) return task(Variance{{3}}, DenseRows<3, true>{first, copy, d}, true);
    return task(Variance{{3}}, DenseRows<3, false>{first, copy, d}, false);
  }
  check(call.impurity == "newton", "the compiled impurities are gini, entropy, variance and newton");
  check(d % 2 == 0, "newton needs an even number of statistics per row: G and H of each output");
  if (d == 2) return task(Newton<2>{{2}, call.parameter}, DenseRows<2, true>{first, copy, d}, true);
  return task(Newton<0>{{d}, call.parameter}, DenseRows<0, true>{first, copy, d}, true);
}

nb::tuple py_grow_coded(In<std::uint8_t, 2> codes, In<std::int64_t, 1> offsets, In<double, 1> low, In<double, 1> high,
                        In<std::int32_t, 1> copies, const std::string& impurity, double parameter,
                        const nb::tuple& limits, int n_threads, In<std::int32_t, 1> classes, In<double, 1> weights,
                        int n_classes) {
  const GrowCall call{codes, offsets, low, high, copies, impurity, parameter, limits_of(limits), n_threads};
  return with_coded(GrowTask{call}, classes, weights, n_classes);
}

nb::tuple py_grow_dense(In<std::uint8_t, 2> codes, In<std::int64_t, 1> offsets, In<double, 1> low, In<double, 1> high,
                        In<std::int32_t, 1> copies, const std::string& impurity, double parameter,
                        const nb::tuple& limits, int n_threads, In<double, 2> s) {
  const GrowCall call{codes, offsets, low, high, copies, impurity, parameter, limits_of(limits), n_threads};
  return with_dense(GrowTask{call}, s);
}

// The questions of a tree, breadth first: a feature or -1 for a leaf, and the last bin of child 0.
std::vector<Question> checked_questions(In<std::int32_t, 1> feature, In<std::int32_t, 1> bin, std::size_t p) {
  check(feature.shape(0) > 0 && feature.shape(0) == bin.shape(0), "a tree needs one feature and one bin per node");
  std::vector<Question> questions;
  std::size_t announced = 1;
  for (std::size_t k = 0; k < feature.shape(0); ++k) {
    const std::int32_t j = feature.data()[k];
    check(j >= -1 && j < static_cast<std::int64_t>(p), "a question's feature is outside X");
    check(k < announced, "nodes must be listed breadth first, two children to each that asks");
    announced += j >= 0 ? 2 : 0;
    questions.push_back({j, bin.data()[k]});
  }
  check(announced == questions.size(), "nodes must be listed breadth first, two children to each that asks");
  return questions;
}

std::vector<Draw> checked_draws(In<std::uint64_t, 2> draws) {
  check(draws.shape(0) == 0 || draws.shape(1) == 3, "a round needs three random numbers");
  std::vector<Draw> listed;
  for (const std::uint64_t* at = draws.data(); listed.size() < draws.shape(0); at += 3) {
    listed.push_back({at[0], at[1], at[2]});
  }
  return listed;
}

nb::tuple py_search_coded(In<std::uint8_t, 2> codes, In<std::int64_t, 1> offsets, In<double, 1> low, In<double, 1> high,
                          In<std::int32_t, 1> copies, const std::string& impurity, double parameter,
                          const nb::tuple& limits, int n_threads, In<std::int32_t, 1> feature, In<std::int32_t, 1> bin,
                          In<std::uint64_t, 2> draws, In<std::int32_t, 1> classes, In<double, 1> weights,
                          int n_classes) {
  const GrowCall call{codes, offsets, low, high, copies, impurity, parameter, limits_of(limits), n_threads};
  const std::vector<Question> questions = checked_questions(feature, bin, call.p());
  const std::vector<Draw> rounds = checked_draws(draws);
  return with_coded(SearchTask{call, questions, rounds}, classes, weights, n_classes);
}

nb::tuple py_search_dense(In<std::uint8_t, 2> codes, In<std::int64_t, 1> offsets, In<double, 1> low, In<double, 1> high,
                          In<std::int32_t, 1> copies, const std::string& impurity, double parameter,
                          const nb::tuple& limits, int n_threads, In<std::int32_t, 1> feature, In<std::int32_t, 1> bin,
                          In<std::uint64_t, 2> draws, In<double, 2> s) {
  const GrowCall call{codes, offsets, low, high, copies, impurity, parameter, limits_of(limits), n_threads};
  const std::vector<Question> questions = checked_questions(feature, bin, call.p());
  const std::vector<Draw> rounds = checked_draws(draws);
  return with_dense(SearchTask{call, questions, rounds}, s);
}

}  // namespace

NB_MODULE(_core, m) {
  m.def("make_bins", &py_make_bins<float>, nb::arg("X").noconvert(), nb::arg("order"), nb::arg("weight"),
        nb::arg("max_bins"), nb::arg("n_threads"));
  m.def("make_bins", &py_make_bins<double>, nb::arg("X").noconvert(), nb::arg("order"), nb::arg("weight"),
        nb::arg("max_bins"), nb::arg("n_threads"));
  m.def("grow_coded", &py_grow_coded, nb::arg("codes").noconvert(), nb::arg("offsets"), nb::arg("low"), nb::arg("high"),
        nb::arg("copies"), nb::arg("impurity"), nb::arg("parameter"), nb::arg("limits"), nb::arg("n_threads"),
        nb::arg("classes"), nb::arg("weights"), nb::arg("n_classes"));
  m.def("grow_dense", &py_grow_dense, nb::arg("codes").noconvert(), nb::arg("offsets"), nb::arg("low"), nb::arg("high"),
        nb::arg("copies"), nb::arg("impurity"), nb::arg("parameter"), nb::arg("limits"), nb::arg("n_threads"),
        nb::arg("s"));
  m.def("search_coded", &py_search_coded, nb::arg("codes").noconvert(), nb::arg("offsets"), nb::arg("low"),
        nb::arg("high"), nb::arg("copies"), nb::arg("impurity"), nb::arg("parameter"), nb::arg("limits"),
        nb::arg("n_threads"), nb::arg("feature"), nb::arg("bin"), nb::arg("draws"), nb::arg("classes"),
        nb::arg("weights"), nb::arg("n_classes"));
  m.def("search_dense", &py_search_dense, nb::arg("codes").noconvert(), nb::arg("offsets"), nb::arg("low"),
        nb::arg("high"), nb::arg("copies"), nb::arg("impurity"), nb::arg("parameter"), nb::arg("limits"),
        nb::arg("n_threads"), nb::arg("feature"), nb::arg("bin"), nb::arg("draws"), nb::arg("s"));
  m.def("shuffle", &py_shuffle, nb::arg("numbers").noconvert(), nb::arg("drawn"), nb::arg("seed"));
  m.def("row_hash", &py_row_hash<float>, nb::arg("X").noconvert(), nb::arg("n_threads"));
  m.def("row_hash", &py_row_hash<double>, nb::arg("X").noconvert(), nb::arg("n_threads"));
  m.def("column_moments", &py_column_moments<float>, nb::arg("X").noconvert(), nb::arg("order"), nb::arg("weight"),
        nb::arg("n_threads"));
  m.def("column_moments", &py_column_moments<double>, nb::arg("X").noconvert(), nb::arg("order"), nb::arg("weight"),
        nb::arg("n_threads"));
  m.def("standardise", &py_standardise<float>, nb::arg("X").noconvert(), nb::arg("order"), nb::arg("center"),
        nb::arg("per_scale"), nb::arg("n_threads"));
  m.def("standardise", &py_standardise<double>, nb::arg("X").noconvert(), nb::arg("order"), nb::arg("center"),
        nb::arg("per_scale"), nb::arg("n_threads"));
  m.def("route", &py_route<float>, nb::arg("X").noconvert(), nb::arg("first_child"), nb::arg("kind"), nb::arg("row"),
        nb::arg("feature"), nb::arg("threshold"), nb::arg("weights"), nb::arg("bias"), nb::arg("n_threads"),
        nb::arg("check_finite") = false);
  m.def("route", &py_route<double>, nb::arg("X").noconvert(), nb::arg("first_child"), nb::arg("kind"), nb::arg("row"),
        nb::arg("feature"), nb::arg("threshold"), nb::arg("weights"), nb::arg("bias"), nb::arg("n_threads"),
        nb::arg("check_finite") = false);
  m.def("descend", &py_descend, nb::arg("theta").noconvert(), nb::arg("mean").noconvert(),
        nb::arg("square").noconvert(), nb::arg("step"), nb::arg("batches"), nb::arg("rates"), nb::arg("decay"),
        nb::arg("beta1"), nb::arg("beta2"), nb::arg("epsilon"), nb::arg("Z").noconvert(),
        nb::arg("codes").noconvert().none(), nb::arg("s"), nb::arg("d"), nb::arg("first_child"), nb::arg("rank"),
        nb::arg("leaf_of").noconvert(), nb::arg("tolerance"), nb::arg("impurity"), nb::arg("reg_lambda"),
        nb::arg("n_threads"));
  m.def("sample_descend", &py_sample_descend, nb::arg("theta").noconvert(), nb::arg("mean").noconvert(),
        nb::arg("square").noconvert(), nb::arg("step"), nb::arg("batches"), nb::arg("rates"), nb::arg("decay"),
        nb::arg("beta1"), nb::arg("beta2"), nb::arg("epsilon"), nb::arg("Z").noconvert(),
        nb::arg("codes").noconvert().none(), nb::arg("s"), nb::arg("d"), nb::arg("first_child"), nb::arg("n_draws"),
        nb::arg("seed"), nb::arg("impurity"), nb::arg("reg_lambda"), nb::arg("n_threads"));
  m.def("leaf_sums", &py_leaf_sums, nb::arg("theta"), nb::arg("Z").noconvert(), nb::arg("codes").noconvert().none(),
        nb::arg("s"), nb::arg("d"), nb::arg("first_child"), nb::arg("n_threads"));
  m.def("gradient", &py_gradient, nb::arg("theta"), nb::arg("slope"), nb::arg("Z").noconvert(),
        nb::arg("codes").noconvert().none(), nb::arg("s"), nb::arg("d"), nb::arg("first_child"), nb::arg("n_threads"));
}
