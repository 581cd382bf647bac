// Impurities as small structs: phi of d additive statistics, written once over a number type V (see pack.hpp).
//
//   phi         impurity times weight; concave and 1-homogeneous
//   magnitude   size of the numbers phi subtracts: a gain below kRounding of it is rounding, not a gain
//   weight      the weight inside the statistics, where they hold one (kHasWeight)
//
// The formulas are those of softwood/impurity.py, term for term. D is the number of statistics where it is known
// when compiling, else 0.
#pragma once

#include <cmath>

#include "pack.hpp"

namespace softwood {

constexpr double kTiny = 1e-30;        // keeps 0 / 0 at 0
constexpr double kLeastShare = 1e-12;  // caps the logarithm of what is absent
constexpr double kRounding = 1e-12;    // gains closer than this share of the magnitude are equal

template <int D>
struct Statistics {
  static constexpr int kD = D;
  int size;
  int d() const { return D ? D : size; }
};

template <class V>
V total_of(const V* S, int d) {
  V N = S[0];
  for (int c = 1; c < d; ++c) N = N + S[c];
  return N;
}

template <int D>
struct Gini : Statistics<D> {
  static constexpr bool kHasWeight = true, kSplitsPure = false;

  template <class V>
  V phi(const V* S) const {
    V N = S[0], squares = S[0] * S[0];
    for (int c = 1; c < this->d(); ++c) {
      N = N + S[c];
      squares = squares + S[c] * S[c];
    }
    return N - squares / (N + V(kTiny));
  }
  double weight(const double* S) const { return total_of(S, this->d()); }
  double magnitude(const double* S) const { return weight(S); }
};

template <int D>
struct Entropy : Statistics<D> {
  static constexpr bool kHasWeight = true, kSplitsPure = false;

  template <class V>
  V phi(const V* S) const {
    const V N = total_of(S, this->d()), per_N = V(1.0) / (N + V(kTiny));
    V sum(0.0);
    for (int c = 0; c < this->d(); ++c) sum = sum - S[c] * log_of(larger(S[c] * per_N, V(kLeastShare)));
    return sum;
  }
  double weight(const double* S) const { return total_of(S, this->d()); }
  double magnitude(const double* S) const { return weight(S); }
};

// S = (w, w y, w y^2)
struct Variance : Statistics<3> {
  static constexpr bool kHasWeight = true, kSplitsPure = false;

  template <class V>
  V phi(const V* S) const {
    return larger(S[2] - S[1] * S[1] / (S[0] + V(kTiny)), V(0.0));
  }
  double weight(const double* S) const { return S[0]; }
  double magnitude(const double* S) const { return S[2]; }
};

// S_y / S_1; 1 where the node is empty, as softwood/impurity.py has it.
inline double mean_of(const double* S) { return S[0] > 0 ? S[1] / (S[0] + kTiny) : 1.0; }

// S = (w, w y, w y log y)
struct Poisson : Statistics<3> {
  static constexpr bool kHasWeight = true, kSplitsPure = false;

  template <class V>
  V phi(const V* S) const {
    return larger(S[2] - S[1] * log_of(larger(S[1] / (S[0] + V(kTiny)), V(kLeastShare))), V(0.0));
  }
  double weight(const double* S) const { return S[0]; }
  double magnitude(const double* S) const {  // |phi| + sum |S . slope|
    const double mu = mean_of(S), log = std::log(larger(mu, kLeastShare));
    return phi(S) + std::abs(S[0] * mu) + std::abs(S[1] * (1.0 + log)) + std::abs(S[2]);
  }
};

// S = (w, w y, w log y)
struct Gamma : Statistics<3> {
  static constexpr bool kHasWeight = true, kSplitsPure = false;

  template <class V>
  V phi(const V* S) const {
    return larger(S[0] * log_of(larger(S[1] / (S[0] + V(kTiny)), V(kTiny))) - S[2], V(0.0));
  }
  double weight(const double* S) const { return S[0]; }
  double magnitude(const double* S) const {  // |phi| + sum |S . slope|
    const double mu = mean_of(S), log = std::log(larger(mu, kTiny));
    return phi(S) + std::abs(S[0] * (log - 1.0)) + std::abs(S[1] / (mu + kTiny)) + std::abs(S[2]);
  }
};

// S = (G_1 .. G_k, H_1 .. H_k)
template <int D>
struct Newton : Statistics<D> {
  static constexpr bool kHasWeight = false, kSplitsPure = true;
  double reg_lambda;

  template <class V>
  V phi(const V* S) const {
    const int k = this->d() / 2;
    V sum(0.0);
    for (int c = 0; c < k; ++c) sum = sum + S[c] * S[c] / (S[k + c] + V(reg_lambda + kTiny));
    return V(-0.5) * sum;
  }
  double weight(const double*) const { return 0; }
  double magnitude(const double* S) const {  // |phi| + sum |S . slope|
    const int k = this->d() / 2;
    double sum = 0;
    for (int c = 0; c < k; ++c) {
      const double v = S[c] / (S[k + c] + reg_lambda + kTiny);
      sum += 1.5 * std::abs(S[c] * v) + 0.5 * std::abs(S[k + c]) * v * v;
    }
    return sum;
  }
};

}  // namespace softwood
