// Eight doubles that are worked on together: one source for scalar and vector arithmetic. Formulas are written once
// over a number type V, and run with V = double at a node and V = Pack along the cuts of a histogram.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "lanes.hpp"

namespace softwood {

struct alignas(64) Pack {
  static constexpr int kLanes = 8;
  double lane[kLanes];

  Pack() = default;
  Pack(double value) {  // NOLINT: a number stands for eight of it
    for (double& x : lane) x = value;
  }
  static Pack load(const double* from) {
    Pack out;
    for (int l = 0; l < kLanes; ++l) out.lane[l] = from[l];
    return out;
  }
  void store(double* to) const {
    for (int l = 0; l < kLanes; ++l) to[l] = lane[l];
  }
};

#define SOFTWOOD_PACK_OP(op)                                                     \
  inline Pack operator op(const Pack& a, const Pack& b) {                        \
    Pack out;                                                                    \
    for (int l = 0; l < Pack::kLanes; ++l) out.lane[l] = a.lane[l] op b.lane[l]; \
    return out;                                                                  \
  }
SOFTWOOD_PACK_OP(+)
SOFTWOOD_PACK_OP(-)
SOFTWOOD_PACK_OP(*)
SOFTWOOD_PACK_OP(/)
#undef SOFTWOOD_PACK_OP

inline double larger(double a, double b) { return a > b ? a : b; }
inline Pack larger(const Pack& a, const Pack& b) {
  Pack out;
  for (int l = 0; l < Pack::kLanes; ++l) out.lane[l] = larger(a.lane[l], b.lane[l]);
  return out;
}

// Natural logarithm of a positive normal number, to about one unit in the last place, without branches or calls, so
// that a loop over it is vectorised. x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) / (m + 1)).
SOFTWOOD_INLINE double log_of(double x) {
  constexpr std::uint64_t kHalfRoot = 0x3FE6A09E667F3BCDull;  // the bits of sqrt(1/2)
  constexpr double kShift = 6755399441055744.0;               // 1.5 * 2^52: an integer to a double by its bits
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t apart = bits - kHalfRoot + (1024ull << 52);
  const std::uint64_t biased = apart >> 52;  // e + 1024
  const double m = std::bit_cast<double>((apart & 0xFFFFFFFFFFFFFull) + kHalfRoot);
  const double e = std::bit_cast<double>(std::bit_cast<std::uint64_t>(kShift) + biased) - kShift - 1024.0;
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double series = 1.0 / 23;
  series = series * z + 1.0 / 21;
  series = series * z + 1.0 / 19;
  series = series * z + 1.0 / 17;
  series = series * z + 1.0 / 15;
  series = series * z + 1.0 / 13;
  series = series * z + 1.0 / 11;
  series = series * z + 1.0 / 9;
  series = series * z + 1.0 / 7;
  series = series * z + 1.0 / 5;
  series = series * z + 1.0 / 3;
  return e * 0.693147180559945309417 + 2.0 * (s + s * z * series);
}
// Compiled for several instruction sets: the vectors of the oldest are too narrow for its integers.
SOFTWOOD_CLONES inline void take_logs(const double* x, double* out) {
  for (int l = 0; l < Pack::kLanes; ++l) out[l] = log_of(x[l]);
}
inline Pack log_of(const Pack& x) {
  Pack out;
  take_logs(x.lane, out.lane);
  return out;
}

}  // namespace softwood
