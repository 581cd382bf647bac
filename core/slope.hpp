// phi and slope of the built-in impurities on one statistic vector, in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "impurity.hpp"

namespace softwood {

enum class Impurity { kGini, kEntropy, kVariance, kNewton, kPoisson, kGamma };

struct ImpurityChoice {
  Impurity kind;
  double reg_lambda;
};

inline double gini_slope(const double* S, std::int64_t d, float* slope) {
  double N = 0, squares = 0;
  for (std::int64_t c = 0; c < d; ++c) N += S[c], squares += S[c] * S[c];
  const double share = 1.0 / (N + kTiny);
  for (std::int64_t c = 0; c < d; ++c) slope[c] = static_cast<float>(1 - 2 * S[c] * share + squares * share * share);
  return N - squares * share;
}

inline double entropy_slope(const double* S, std::int64_t d, float* slope) {
  double N = 0, phi = 0;
  for (std::int64_t c = 0; c < d; ++c) N += S[c];
  for (std::int64_t c = 0; c < d; ++c) {
    const double q = S[c] / (N + kTiny), bits = -std::log(larger(q, kLeastShare));
    phi += S[c] * bits;
    slope[c] = static_cast<float>(bits);
  }
  return phi;
}

inline double variance_slope(const double* S, float* slope) {
  const double mu = S[1] / (S[0] + kTiny), rest = S[2] - S[1] * mu;
  slope[0] = static_cast<float>(mu * mu);
  slope[1] = static_cast<float>(-2 * mu);
  slope[2] = 1.0f;
  return rest > 0 ? rest : 0;
}

inline double newton_slope(const double* S, std::int64_t d, double reg_lambda, float* slope) {
  const std::int64_t half = d / 2;
  double phi = 0;
  for (std::int64_t c = 0; c < half; ++c) {
    const double v = S[c] / (S[half + c] + reg_lambda + kTiny);
    phi -= 0.5 * S[c] * v;
    slope[c] = static_cast<float>(-v);
    slope[half + c] = static_cast<float>(0.5 * v * v);
  }
  return phi;
}

inline double poisson_slope(const double* S, float* slope) {
  const double mu = mean_of(S), log = std::log(larger(mu, kLeastShare));
  slope[0] = static_cast<float>(mu);
  slope[1] = static_cast<float>(-1 - log);
  slope[2] = 1.0f;
  return larger(S[2] - S[1] * log, 0.0);
}

inline double gamma_slope(const double* S, float* slope) {
  const double mu = mean_of(S), log = std::log(larger(mu, kTiny));
  slope[0] = static_cast<float>(log - 1);
  slope[1] = static_cast<float>(1 / (mu + kTiny));
  slope[2] = -1.0f;
  return larger(S[0] * log - S[2], 0.0);
}

// Returns phi(S) and writes its gradient.
inline double phi_and_slope(const ImpurityChoice& impurity, const double* S, std::int64_t d, float* slope) {
  switch (impurity.kind) {
    case Impurity::kGini:
      return gini_slope(S, d, slope);
    case Impurity::kEntropy:
      return entropy_slope(S, d, slope);
    case Impurity::kVariance:
      return variance_slope(S, slope);
    case Impurity::kPoisson:
      return poisson_slope(S, slope);
    case Impurity::kGamma:
      return gamma_slope(S, slope);
    default:
      return newton_slope(S, d, impurity.reg_lambda, slope);
  }
}

}  // namespace softwood
