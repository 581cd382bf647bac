// Quantile bins of numeric columns: one byte per cell, and the least and greatest value of every bin.
//
// A column with at most max_bins distinct values gets one bin per value; another gets bins of about equal weight,
// with a bin of its own for every value heavier than that. A cut between bins a and b is the threshold
// between(high[a], low[b]): question x > t, with high[a] <= t < low[b] whatever the scale.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "rows.hpp"

namespace softwood {

constexpr int kMaxBins = 255;                    // code 255 is left free: a missing cell
constexpr std::int64_t kQuantileRows = 200'000;  // more rows than this are sampled, evenly over the canonical order
constexpr int kColumnTile = 8;                   // columns read together: a cache line of doubles

// The midpoint of a < b, kept in [a, b) where halves underflow or round up.
inline double between(double a, double b) {
  const double t = 0.5 * a + 0.5 * b;
  return t >= a && t < b ? t : a;
}

// Numbers as unsigned integers in the same order.
template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
KeyOf<T> key_of(T x) {
  using Key = KeyOf<T>;
  constexpr Key kSign = Key(1) << (8 * sizeof(Key) - 1);
  const Key bits = std::bit_cast<Key>(static_cast<T>(x + T(0)));  // -0 is 0
  return bits & kSign ? ~bits : bits | kSign;
}

template <class T>
T value_of(KeyOf<T> key) {
  using Key = KeyOf<T>;
  constexpr Key kSign = Key(1) << (8 * sizeof(Key) - 1);
  return std::bit_cast<T>(static_cast<Key>(key & kSign ? key & ~kSign : ~key));
}

// A value with its weight, or a value alone where all weights are equal.
template <class T>
struct Weighted {
  KeyOf<T> key;
  float mass;
};
template <class T>
struct Alone {
  KeyOf<T> key;
  static constexpr float mass = 1;
};

// Sorts by key, least significant digit first; stable, so the sums of equal keys' weights keep their order.
template <class Item>
void sort_by_key(std::vector<Item>& items, std::vector<Item>& spare) {
  constexpr int kBits = 11, kDigits = (8 * sizeof(Item::key) + kBits - 1) / kBits;
  const std::size_t n = items.size();
  if (n < 1024) {
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.key < b.key; });
    return;
  }
  std::vector<std::uint32_t> counts(kDigits << kBits);
  auto digit = [](const Item& item, int pass) { return (item.key >> (pass * kBits)) & ((1u << kBits) - 1); };
  for (const Item& item : items) {
    for (int pass = 0; pass < kDigits; ++pass) ++counts[(pass << kBits) + digit(item, pass)];
  }
  spare.resize(n);
  for (int pass = 0; pass < kDigits; ++pass) {
    std::uint32_t* place = &counts[pass << kBits];
    if (place[digit(items[0], pass)] == n) continue;  // all have this digit
    std::uint32_t start = 0;
    for (int value = 0; value < 1 << kBits; ++value) start += std::exchange(place[value], start);
    for (const Item& item : items) spare[place[digit(item, pass)]++] = item;
    items.swap(spare);
  }
}

// The distinct keys of a column, as long as they are few: open addressing over four times max_bins places.
template <class Key>
class FewDistinct {
 public:
  explicit FewDistinct(int most) : most_(most), places_(1024), used_(1024) {}

  bool overflown() const { return static_cast<int>(keys_.size()) > most_; }
  void add(Key key) {
    std::size_t at = (static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15ull) >> 54;
    for (; used_[at]; at = (at + 1) & 1023) {
      if (places_[at] == key) return;
    }
    used_[at] = 1;
    places_[at] = key;
    keys_.push_back(key);
  }
  const std::vector<Key>& sorted() {
    std::sort(keys_.begin(), keys_.end());
    return keys_;
  }

 private:
  int most_;
  std::vector<Key> places_, keys_;
  std::vector<char> used_;
};

// The bins of one column while they are made.
struct BinEdges {
  double* low;   // (max_bins,)
  double* high;  // (max_bins,)
  int n_bins = 0;
};

// Bins of about equal weight from sorted items.
template <class T, class Item>
void quantile_bins(const std::vector<Item>& items, int max_bins, BinEdges& edges) {
  double total = 0, filled = 0;
  for (const Item& item : items) total += item.mass;
  double rest = total;
  bool open = false;
  auto close = [&] {
    rest -= filled;
    filled = 0;
    open = false;
    ++edges.n_bins;
  };
  for (std::size_t i = 0; i < items.size();) {
    const auto key = items[i].key;
    double mass = 0;
    for (; i < items.size() && items[i].key == key; ++i) mass += items[i].mass;
    if (open && edges.n_bins + 1 < max_bins && mass * max_bins >= total) close();
    const double value = static_cast<double>(value_of<T>(key));
    if (!open) edges.low[edges.n_bins] = value;
    edges.high[edges.n_bins] = value;
    open = true;
    filled += mass;
    if (edges.n_bins + 1 < max_bins && filled * (max_bins - edges.n_bins) >= rest) close();
  }
  if (open) close();
}

template <class T>
struct BinnedColumns {
  const T* X;                 // (rows, p)
  const std::int64_t* order;  // (n,)
  const double* weight;       // (n,)
  std::int64_t n, p;
  int max_bins;
  bool equal_weights;
  const T* row(std::int64_t i) const { return X + order[i] * p; }
};

// One bin per distinct value for the columns of a tile that have few; says which have.
template <class T>
void exact_tile(const BinnedColumns<T>& data, std::int64_t first, int width, BinEdges* edges) {
  std::vector<FewDistinct<KeyOf<T>>> distinct(width, FewDistinct<KeyOf<T>>(data.max_bins));
  int n_open = width;
  for (std::int64_t i = 0; i < data.n && n_open > 0; ++i) {
    const T* x = data.row(i) + first;
    for (int j = 0; j < width; ++j) {
      if (distinct[j].overflown()) continue;
      distinct[j].add(key_of(x[j]));
      n_open -= distinct[j].overflown();
    }
  }
  for (int j = 0; j < width; ++j) {
    if (distinct[j].overflown()) continue;
    for (auto key : distinct[j].sorted()) {
      const double value = static_cast<double>(value_of<T>(key));
      edges[j].low[edges[j].n_bins] = edges[j].high[edges[j].n_bins] = value;
      ++edges[j].n_bins;
    }
  }
}

// Quantile bins for the columns of a tile that have no bins yet.
template <class T, class Item>
void quantile_tile(const BinnedColumns<T>& data, std::int64_t first, int width, BinEdges* edges) {
  const std::int64_t n = std::min(data.n, kQuantileRows);
  std::vector<std::vector<Item>> columns(width);
  for (int j = 0; j < width; ++j) columns[j].resize(edges[j].n_bins == 0 ? n : 0);
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t i = data.n == n ? k : k * data.n / n;
    const T* x = data.row(i) + first;
    for (int j = 0; j < width; ++j) {
      if (columns[j].empty()) continue;
      columns[j][k].key = key_of(x[j]);
      if constexpr (std::is_same_v<Item, Weighted<T>>) columns[j][k].mass = static_cast<float>(data.weight[i]);
    }
  }
  std::vector<Item> spare;
  for (int j = 0; j < width; ++j) {
    if (columns[j].empty()) continue;
    sort_by_key(columns[j], spare);
    quantile_bins<T>(columns[j], data.max_bins, edges[j]);
  }
}

// How many of the sorted thresholds each value is above; thresholds are padded with infinity to 256.
inline void codes_of(const double* x, int n, const double* thresholds, int n_bins, std::uint8_t* codes) {
  constexpr int kRows = 256;
  std::int32_t at[kRows] = {};
  for (int step = static_cast<int>(std::bit_ceil(static_cast<unsigned>(n_bins))) / 2; step > 0; step /= 2) {
    for (int i = 0; i < n; ++i) at[i] += thresholds[at[i] + step - 1] < x[i] ? step : 0;
  }
  for (int i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(at[i]);
}

// Codes of 256 rows.
template <class T>
void code_rows(const BinnedColumns<T>& data, std::int64_t start, const double* thresholds, const std::int32_t* n_bins,
               std::uint8_t* codes) {
  constexpr int kRows = 256;
  double tile[kColumnTile][kRows];
  const int n = static_cast<int>(std::min<std::int64_t>(kRows, data.n - start));
  for (std::int64_t first = 0; first < data.p; first += kColumnTile) {
    const int width = static_cast<int>(std::min<std::int64_t>(kColumnTile, data.p - first));
    for (int i = 0; i < n; ++i) {
      const T* x = data.row(start + i) + first;
      for (int j = 0; j < width; ++j) tile[j][i] = static_cast<double>(x[j]);
    }
    for (int j = 0; j < width; ++j) {
      codes_of(tile[j], n, thresholds + (first + j) * 256, n_bins[first + j], codes + (first + j) * data.n + start);
    }
  }
}

// Bins and codes of every column; unfinished where poll said to stop.
template <class T>
void make_bins(const BinnedColumns<T>& data,
               double* low,           // (p, max_bins)
               double* high,          // (p, max_bins)
               std::int32_t* n_bins,  // (p,)
               std::uint8_t* codes,   // (p, n)
               Team& team, const Poll& poll) {
  std::atomic<bool> stop{false};
  auto asked_to_stop = [&](int member) {
    if (member == 0 && poll()) stop = true;
    return stop.load();
  };
  team.run((data.p + kColumnTile - 1) / kColumnTile, [&](std::size_t tile, int member) {
    if (asked_to_stop(member)) return;
    const std::int64_t first = tile * kColumnTile;
    const int width = static_cast<int>(std::min<std::int64_t>(kColumnTile, data.p - first));
    BinEdges edges[kColumnTile];
    for (int j = 0; j < width; ++j) edges[j] = {low + (first + j) * data.max_bins, high + (first + j) * data.max_bins};
    exact_tile(data, first, width, edges);
    if (data.equal_weights) {
      quantile_tile<T, Alone<T>>(data, first, width, edges);
    } else {
      quantile_tile<T, Weighted<T>>(data, first, width, edges);
    }
    for (int j = 0; j < width; ++j) n_bins[first + j] = edges[j].n_bins;
  });
  std::vector<double> thresholds(data.p * 256, std::numeric_limits<double>::infinity());
  for (std::int64_t j = 0; j < data.p; ++j) {
    const double *lows = low + j * data.max_bins, *highs = high + j * data.max_bins;
    for (int b = 0; b + 1 < n_bins[j]; ++b) thresholds[j * 256 + b] = between(highs[b], lows[b + 1]);
  }
  team.run((data.n + 255) / 256, [&](std::size_t block, int member) {
    if (block % 64 == 0 ? asked_to_stop(member) : stop.load()) return;
    code_rows(data, block * 256, thresholds.data(), n_bins, codes);
  });
}

}  // namespace softwood
