#include "Random.h"

#include <array>
#include <cmath>

using namespace windlass::interpreter;

static std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t(0xD2511F53) * counter[0], second = uint64_t(0xCD9E8D57) * counter[2];
    counter = {uint32_t(second >> 32) ^ counter[1] ^ key[0], uint32_t(second),
               uint32_t(first >> 32) ^ counter[3] ^ key[1], uint32_t(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// FNV-1a: the same on every machine.
static uint64_t hashOf(llvm::StringRef name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : name)
    hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

static std::array<uint32_t, 4> bitsOf(int64_t element, uint64_t seed, uint64_t name) {
  return philox({uint32_t(element), uint32_t(uint64_t(element) >> 32), uint32_t(name), uint32_t(name >> 32)},
                {uint32_t(seed), uint32_t(seed >> 32)});
}

Tensor windlass::interpreter::randomNormal(ElementKind kind, llvm::ArrayRef<int64_t> shape, double mean,
                                           double deviation, uint64_t seed, llvm::StringRef name) {
  Tensor result(kind, shape);
  uint64_t hash = hashOf(name);
  for (int64_t i = 0; i < result.getElements(); ++i) {
    std::array<uint32_t, 4> bits = bitsOf(i, seed, hash);
    // Box and Muller, with the first number in (0, 1].
    double radius = std::sqrt(-2 * std::log((bits[0] + 1.0) / 4294967296.0));
    double angle = 6.283185307179586 * (bits[1] / 4294967296.0);
    result.set(i, static_cast<float>(mean + deviation * radius * std::cos(angle)));
  }
  return result;
}

Tensor windlass::interpreter::randomIntegers(ElementKind kind, llvm::ArrayRef<int64_t> shape, int64_t bound,
                                             uint64_t seed, llvm::StringRef name) {
  Tensor result(kind, shape);
  uint64_t hash = hashOf(name);
  for (int64_t i = 0; i < result.getElements(); ++i)
    result.set(i, static_cast<double>(bitsOf(i, seed, hash)[0] % static_cast<uint64_t>(bound)));
  return result;
}
