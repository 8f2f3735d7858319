#include "windlass/Profile/CollectiveWork.h"

using namespace windlass;

int64_t CollectiveWork::getRingSteps() const {
  if (kind == "permute")
    return 1;
  return (group.getMembers() - 1) * (kind == "all_reduce" ? 2 : 1);
}

double CollectiveWork::getRingBytes() const {
  if (kind == "permute")
    return payloadBytes;
  auto members = static_cast<double>(group.getMembers());
  return payloadBytes * (members - 1) / members * (kind == "all_reduce" ? 2 : 1);
}
