#include "Random.h"

#include "windlass/rt/philox.h"

#include <cmath>

using namespace windlass::interpreter;

/// Hashes a name with FNV-1a, which is the same on every machine.
static uint64_t hashOf(llvm::StringRef name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : name)
    hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

static std::array<uint32_t, 4> bitsOf(int64_t element, uint64_t seed, uint64_t name) {
  return windlass::rt::philox(uint64_t(element), name, seed);
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

Tensor windlass::interpreter::dropoutKeys(llvm::ArrayRef<int64_t> shape, uint64_t seed, int64_t k) {
  Tensor result(ElementKind::i64, shape);
  int64_t masks = shape[1];
  for (auto [i, key] : llvm::enumerate(result.mutableValues<int64_t>()))
    key = windlass::rt::dropout_key(seed, uint64_t(k * shape[0] + int64_t(i) / masks), uint64_t(int64_t(i) % masks));
  return result;
}
