// Sixteen floats at once, in the compiler's own vector types: no intrinsics, any instruction set.
//
// SOFTWOOD_CLONES makes one copy of a function per instruction set, chosen when the library is loaded; everything it
// calls in its loops must be SOFTWOOD_INLINE to be compiled along with it.
#pragma once

#include <cstdint>
#include <cstring>

#if !defined(__GNUC__)
#error "softwood's core needs GCC or Clang (vector extensions)."
#endif

#if defined(__x86_64__) && !defined(__APPLE__) && !defined(__clang__)
#define SOFTWOOD_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SOFTWOOD_CLONES
#endif
#define SOFTWOOD_INLINE inline __attribute__((always_inline))

namespace softwood {

constexpr int kLanes = 16;

typedef float Lanes __attribute__((vector_size(64)));
typedef std::int32_t IntLanes __attribute__((vector_size(64)));

SOFTWOOD_INLINE void load(Lanes& out, const float* from) { out = *reinterpret_cast<const Lanes*>(from); }
SOFTWOOD_INLINE void store(const Lanes& value, float* to) { *reinterpret_cast<Lanes*>(to) = value; }

typedef float HalfLanes __attribute__((vector_size(32)));
typedef float Quad __attribute__((vector_size(16)));

SOFTWOOD_INLINE float sum(const Lanes& value) {
  const HalfLanes low = __builtin_shufflevector(value, value, 0, 1, 2, 3, 4, 5, 6, 7);
  const HalfLanes high = __builtin_shufflevector(value, value, 8, 9, 10, 11, 12, 13, 14, 15);
  const HalfLanes eight = low + high;
  const Quad four =
      __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  const Quad two = four + __builtin_shufflevector(four, four, 2, 3, 0, 1);
  return two[0] + two[1];
}

// Asks for a row that comes next while others are worked on.
template <class T>
SOFTWOOD_INLINE void prefetch(const T* x, std::int64_t p) {
  for (std::int64_t j = 0; j < p; j += 64 / static_cast<std::int64_t>(sizeof(T))) __builtin_prefetch(x + j);
}

// Writes four rows of four numbers as four columns.
SOFTWOOD_INLINE void transpose(const float* const* rows, float* to, std::int64_t stride) {
  Quad a, b, c, d;
  std::memcpy(&a, rows[0], sizeof a);
  std::memcpy(&b, rows[1], sizeof b);
  std::memcpy(&c, rows[2], sizeof c);
  std::memcpy(&d, rows[3], sizeof d);
  const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  *reinterpret_cast<Quad*>(to) = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
  *reinterpret_cast<Quad*>(to + stride) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
  *reinterpret_cast<Quad*>(to + 2 * stride) = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  *reinterpret_cast<Quad*>(to + 3 * stride) = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

SOFTWOOD_INLINE bool any_above(const Lanes& value, float bound) {
  typedef signed char Bytes __attribute__((vector_size(kLanes)));
  const IntLanes above = value > bound;
  const Bytes narrow = __builtin_convertvector(above, Bytes);
  std::int64_t part[2];
  std::memcpy(part, &narrow, sizeof part);
  return (part[0] | part[1]) != 0;
}

// 1 / x for 1 <= x <= 2^120, to a unit or two in the last place: a guess from the bits, refined by two steps of the
// third order. A division takes as long as all of it twice over.
SOFTWOOD_INLINE Lanes reciprocal(const Lanes& x) {
  IntLanes bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = 0x7EF311C3 - bits;
  Lanes r;
  std::memcpy(&r, &bits, sizeof r);
  for (int step = 0; step < 2; ++step) {
    const Lanes error = 1.0f - x * r;
    r += r * (error + error * error);
  }
  return r;
}

// 1 / (1 + exp(-z)). exp by 2^n 2^f: the magic number rounds to an integer whose bits are then the exponent; |z| is cut
// at 80.
SOFTWOOD_INLINE Lanes sigmoid(const Lanes& z) {
  Lanes y = z * -1.44269504088896341f;
  y = y > 115.0f ? Lanes{} + 115.0f : y;
  y = y < -115.0f ? Lanes{} - 115.0f : y;
  const Lanes magic = Lanes{} + 12582912.0f;
  const Lanes rounded = y + magic;
  const Lanes f = y - (rounded - magic);
  Lanes e = f * 1.5403530393381608e-4f + 1.3333558146428443e-3f;
  e = e * f + 9.6181291076284771e-3f;
  e = e * f + 5.5504108664821580e-2f;
  e = e * f + 2.4022650695910071e-1f;
  e = e * f + 6.9314718055994531e-1f;
  e = e * f + 1.0f;
  IntLanes bits, exponent;
  std::memcpy(&bits, &e, sizeof bits);
  std::memcpy(&exponent, &rounded, sizeof exponent);
  bits += exponent << 23;
  std::memcpy(&e, &bits, sizeof e);
  return reciprocal(1.0f + e);
}

}  // namespace softwood
