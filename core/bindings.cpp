// The only file that knows Python: it checks every length and index, lets go of the GIL, and calls a kernel.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "parallel.hpp"
#include "route.hpp"
#include "rows.hpp"

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

template <class T>
Out<std::uint64_t, 1> py_row_hash(In<T, 2> X, int n_threads) {
  auto hash = fresh<std::uint64_t, 1>({X.shape(0)});
  nb::gil_scoped_release release;
  Team team(n_threads);
  row_hash(X.data(), X.shape(0), X.shape(1), hash.data(), team);
  return hash;
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

template <class T>
Out<std::int32_t, 1> py_route(In<T, 2> X, In<std::int32_t, 1> first_child, In<std::int8_t, 1> kind,
                              In<std::int32_t, 1> row, In<std::int32_t, 1> feature, In<double, 1> threshold,
                              In<double, 2> weights, In<double, 1> bias, int n_threads) {
  const std::size_t m = first_child.shape(0), p = X.shape(1);
  check(m > 0 && kind.shape(0) == m && row.shape(0) == m, "a tree needs one entry per node");
  check(feature.shape(0) == threshold.shape(0), "threshold questions need one threshold per feature");
  check(weights.shape(0) == bias.shape(0) && (bias.shape(0) == 0 || weights.shape(1) == p),
        "linear questions need one weight per column");
  for (std::size_t k = 0; k < m; ++k) {
    const std::int64_t first = first_child.data()[k], r = row.data()[k];
    if (first == 0) continue;
    const int table = kind.data()[k];
    check(first > static_cast<std::int64_t>(k) && first + 1 < static_cast<std::int64_t>(m), "a child is outside the tree");
    check(table == 0 || table == 1, "a question is of an unknown kind");
    check(r >= 0 && r < static_cast<std::int64_t>(table == 0 ? feature.shape(0) : bias.shape(0)),
          "a question is outside its table");
  }
  for (std::size_t k = 0; k < feature.shape(0); ++k) {
    check(feature.data()[k] >= 0 && feature.data()[k] < static_cast<std::int64_t>(p), "a feature is outside X");
  }
  auto leaf = fresh<std::int32_t, 1>({X.shape(0)});
  nb::gil_scoped_release release;
  Team team(n_threads);
  const HardTree tree{first_child.data(), kind.data(),    row.data(), feature.data(),
                      threshold.data(),   weights.data(), bias.data()};
  route(tree, X.data(), X.shape(0), p, leaf.data(), team);
  return leaf;
}

}  // namespace

NB_MODULE(_core, m) {
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
        nb::arg("feature"), nb::arg("threshold"), nb::arg("weights"), nb::arg("bias"), nb::arg("n_threads"));
  m.def("route", &py_route<double>, nb::arg("X").noconvert(), nb::arg("first_child"), nb::arg("kind"),
        nb::arg("row"), nb::arg("feature"), nb::arg("threshold"), nb::arg("weights"), nb::arg("bias"),
        nb::arg("n_threads"));
}
