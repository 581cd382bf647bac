// Rows of a table: their content as a hash, the moments of columns, and the standardised copy training reads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "parallel.hpp"

namespace softwood {

constexpr std::int64_t kRowBlock = 4096;  // rows of one task: fixed, so sums do not depend on threads

inline std::int64_t blocks_of(std::int64_t n) { return (n + kRowBlock - 1) / kRowBlock; }

inline std::uint64_t mixed(std::uint64_t h, double x) {
  x = x != x ? std::numeric_limits<double>::quiet_NaN() : x + 0.0;
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  h = (h ^ bits) * 0xFF51AFD7ED558CCDull;
  return h ^ (h >> 32);
}

// Rows abreast: each hash is a chain of multiplications, and chains overlap.
template <int Rows, class T>
void hash_abreast(const T* X, std::int64_t p, std::uint64_t* hash) {
  std::uint64_t h[Rows];
  for (auto& each : h) each = 0x9E3779B97F4A7C15ull;
  for (std::int64_t j = 0; j < p; ++j) {
    for (int row = 0; row < Rows; ++row) h[row] = mixed(h[row], static_cast<double>(X[row * p + j]));
  }
  for (int row = 0; row < Rows; ++row) {
    h[row] *= 0xC4CEB9FE1A85EC53ull;
    hash[row] = h[row] ^ (h[row] >> 29);
  }
}

// A 64-bit hash of each row's numbers; -0 equals 0 and a missing value (NaN of any bits) equals another. Equal rows
// have equal hashes on every machine and in both float widths of one value.
template <class T>
void row_hash(const T* X,  // (n, p)
              std::int64_t n, std::int64_t p,
              std::uint64_t* hash,  // (n,)
              Team& team) {
  constexpr int kAbreast = 4;
  team.run(blocks_of(n), [&](std::size_t block, int) {
    const std::int64_t stop = std::min<std::int64_t>(n, (block + 1) * kRowBlock);
    std::int64_t i = block * kRowBlock;
    for (; i + kAbreast <= stop; i += kAbreast) hash_abreast<kAbreast>(X + i * p, p, hash + i);
    for (; i < stop; ++i) hash_abreast<1>(X + i * p, p, hash + i);
  });
}

// Moves a random choice of the numbers, in random order, to the first `drawn` places: Fisher and Yates by splitmix64. A
// place is a product's upper half, which prefers some places by less than one part in 2^32.
inline void shuffle(std::int32_t* numbers, std::int64_t n, std::int64_t drawn, std::uint64_t seed) {
  for (std::int64_t i = 0; i < drawn; ++i) {
    seed += 0x9E3779B97F4A7C15ull;
    std::uint64_t x = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    const std::uint64_t chance = (x ^ (x >> 31)) >> 32;
    std::swap(numbers[i], numbers[i + ((chance * static_cast<std::uint64_t>(n - i)) >> 32)]);
  }
}

// Weighted mean and standard deviation of each column over the rows `order`; a constant column gets scale 0.
// Two passes in double about the first row, so that 1e8 + noise keeps its noise.
template <class T>
void column_moments(const T* X,                 // (rows, p)
                    const std::int64_t* order,  // (n,)
                    const double* weight,       // (n,)
                    std::int64_t n, std::int64_t p,
                    double* center,  // (p,)
                    double* scale,   // (p,)
                    Team& team) {
  const std::int64_t n_blocks = blocks_of(n);
  std::vector<double> sums(n_blocks * p), lows(n_blocks * p), highs(n_blocks * p), totals(n_blocks);
  const T* origin = X + order[0] * p;
  auto each_block = [&](auto&& visit) {
    team.run(n_blocks, [&](std::size_t block, int) {
      const std::int64_t stop = std::min<std::int64_t>(n, (block + 1) * kRowBlock);
      for (std::int64_t i = block * kRowBlock; i < stop; ++i) visit(block, X + order[i] * p, weight[i]);
    });
  };
  std::fill(lows.begin(), lows.end(), std::numeric_limits<double>::infinity());
  std::fill(highs.begin(), highs.end(), -std::numeric_limits<double>::infinity());
  each_block([&](std::size_t block, const T* x, double w) {
    double *sum = &sums[block * p], *low = &lows[block * p], *high = &highs[block * p];
    totals[block] += w;
    for (std::int64_t j = 0; j < p; ++j) {
      const double value = static_cast<double>(x[j]);
      sum[j] += w * (value - static_cast<double>(origin[j]));
      low[j] = std::min(low[j], value);
      high[j] = std::max(high[j], value);
    }
  });
  double total = 0;
  for (double part : totals) total += part;
  for (std::int64_t j = 0; j < p; ++j) {
    double sum = 0;
    for (std::int64_t block = 0; block < n_blocks; ++block) {
      sum += sums[block * p + j];
      lows[j] = std::min(lows[j], lows[block * p + j]);
      highs[j] = std::max(highs[j], highs[block * p + j]);
    }
    center[j] = static_cast<double>(origin[j]) + sum / total;
  }
  std::fill(sums.begin(), sums.end(), 0.0);
  each_block([&](std::size_t block, const T* x, double w) {
    double* sum = &sums[block * p];
    for (std::int64_t j = 0; j < p; ++j) {
      const double gap = static_cast<double>(x[j]) - center[j];
      sum[j] += w * gap * gap;
    }
  });
  for (std::int64_t j = 0; j < p; ++j) {
    double sum = 0;
    for (std::int64_t block = 0; block < n_blocks; ++block) sum += sums[block * p + j];
    scale[j] = lows[j] < highs[j] ? std::sqrt(sum / total) : 0.0;
  }
}

// Z = (X[order] - center) * per_scale in float32.
template <class T>
void standardise(const T* X,                 // (rows, p)
                 const std::int64_t* order,  // (n,)
                 std::int64_t n, std::int64_t p,
                 const double* center,     // (p,)
                 const double* per_scale,  // (p,)
                 float* Z,                 // (n, p)
                 Team& team) {
  team.run(blocks_of(n), [&](std::size_t block, int) {
    const std::int64_t stop = std::min<std::int64_t>(n, (block + 1) * kRowBlock);
    for (std::int64_t i = block * kRowBlock; i < stop; ++i) {
      const T* x = X + order[i] * p;
      for (std::int64_t j = 0; j < p; ++j) {
        Z[i * p + j] = static_cast<float>((static_cast<double>(x[j]) - center[j]) * per_scale[j]);
      }
    }
  });
}

}  // namespace softwood
