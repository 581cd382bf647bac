// Statistics of rows on their way into histogram cells, in both encodings: class codes with weights, and dense s.
//
// A node's statistics are gathered once, next to each other, and then added to the cells of every feature. D is the
// number of statistics where it is known when compiling, else 0. Counted: a cell also holds the number of the
// caller's rows (needed where the statistics do not already say it).
#pragma once

#include <cstdint>
#include <vector>

namespace softwood {

template <int D, bool Counted>
struct CodedRows {
  const std::int32_t* classes;  // (n,)
  const double* weights;        // (n,)
  const std::int32_t* copies;   // (n,)
  int size;

  struct Gathered {
    std::vector<std::int32_t> classes;
    std::vector<double> weights, copies;
  };

  int d() const { return D ? D : size; }
  int stride() const { return d() + Counted; }

  void gather(const std::int32_t* rows, std::int64_t n, Gathered& out) const {
    if (static_cast<std::int64_t>(out.classes.size()) < n) {
      out.classes.resize(n);
      out.weights.resize(n);
      if (Counted) out.copies.resize(n);
    }
    for (std::int64_t k = 0; k < n; ++k) {
      out.classes[k] = classes[rows[k]];
      out.weights[k] = weights[rows[k]];
      if (Counted) out.copies[k] = copies[rows[k]];
    }
  }
  void add(const Gathered& from, std::int64_t k, double* cell) const {
    cell[from.classes[k]] += from.weights[k];
    if (Counted) cell[d()] += from.copies[k];
  }
  void add_row(std::int64_t i, double* S) const { S[classes[i]] += weights[i]; }
  void take_row(std::int64_t i, double* S) const { S[classes[i]] -= weights[i]; }
};

template <int D, bool Counted>
struct DenseRows {
  const double* s;             // (n, d)
  const std::int32_t* copies;  // (n,)
  int size;

  struct Gathered {
    std::vector<double> s;  // (n, stride)
  };

  int d() const { return D ? D : size; }
  int stride() const { return d() + Counted; }

  void gather(const std::int32_t* rows, std::int64_t n, Gathered& out) const {
    if (static_cast<std::int64_t>(out.s.size()) < n * stride()) out.s.resize(n * stride());
    for (std::int64_t k = 0; k < n; ++k) {
      double* to = &out.s[k * stride()];
      for (int c = 0; c < d(); ++c) to[c] = s[static_cast<std::int64_t>(rows[k]) * d() + c];
      if (Counted) to[d()] = copies[rows[k]];
    }
  }
  void add(const Gathered& from, std::int64_t k, double* cell) const {
    const double* row = &from.s[k * stride()];
    for (int c = 0; c < stride(); ++c) cell[c] += row[c];
  }
  void add_row(std::int64_t i, double* S) const {
    for (int c = 0; c < d(); ++c) S[c] += s[i * d() + c];
  }
  void take_row(std::int64_t i, double* S) const {
    for (int c = 0; c < d(); ++c) S[c] -= s[i * d() + c];
  }
};

}  // namespace softwood
