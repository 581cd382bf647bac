// Hard routing: each row follows one path and meets only the questions on it.
#pragma once

#include <algorithm>
#include <cstdint>

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

template <class T>
double dot(const T* x, const double* w, std::int64_t p) {
  // Eight partial sums: a fixed order the compiler can keep in one vector register.
  double part[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  std::int64_t j = 0;
  for (; j + 8 <= p; j += 8) {
    for (int lane = 0; lane < 8; ++lane) part[lane] += static_cast<double>(x[j + lane]) * w[j + lane];
  }
  for (int lane = 0; j < p; ++j, ++lane) part[lane] += static_cast<double>(x[j]) * w[j];
  return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

template <class T>
std::int32_t leaf_of(const HardTree& tree, const T* x, std::int64_t p) {
  std::int32_t node = 0;
  while (tree.first_child[node] != 0) {
    const std::int32_t row = tree.row[node];
    const bool right = tree.kind[node] == 0
                           ? static_cast<double>(x[tree.feature[row]]) > tree.threshold[row]
                           : dot(x, tree.weights + static_cast<std::int64_t>(row) * p, p) + tree.bias[row] > 0;
    node = tree.first_child[node] + (right ? 1 : 0);
  }
  return node;
}

template <class T>
void route(const HardTree& tree,
           const T* X,  // (n, p)
           std::int64_t n, std::int64_t p,
           std::int32_t* leaf,  // (n,)
           Team& team) {
  constexpr std::int64_t kRows = 1024;
  team.run((n + kRows - 1) / kRows, [&](std::size_t block, int) {
    const std::int64_t stop = std::min<std::int64_t>(n, (block + 1) * kRows);
    for (std::int64_t i = block * kRows; i < stop; ++i) leaf[i] = leaf_of(tree, X + i * p, p);
  });
}

}  // namespace softwood
