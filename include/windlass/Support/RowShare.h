// How many tokens choose an expert of one rank. No MLIR.
#ifndef WINDLASS_SUPPORT_ROWSHARE_H
#define WINDLASS_SUPPORT_ROWSHARE_H

#include <cstdint>

namespace windlass {

/// Returns the share of tokens that choose at least one expert of a given member, where each token chooses `chosen`
/// different ones of `experts` experts, all equally often, of which `members` members have equal parts:
/// 1 - C(experts - experts / members, chosen) / C(experts, chosen).
inline double getRowShare(int64_t experts, int64_t members, int64_t chosen) {
  int64_t others = experts - experts / members;
  double none = 1;
  for (int64_t i = 0; i < chosen; ++i)
    none *= others > i ? static_cast<double>(others - i) / static_cast<double>(experts - i) : 0;
  return 1 - none;
}

} // namespace windlass

#endif
