// Whether the sends and receives of all positions meet.
#ifndef WINDLASS_SCHEDULE_CHECKTRANSFERS_H
#define WINDLASS_SCHEDULE_CHECKTRANSFERS_H

#include "windlass/Schedule/Pipeline.h"

namespace windlass::schedule {

/// Checks what needs several positions in `checkPipeline`. Each position by itself is legal.
llvm::Error checkTransfers(const Pipeline &pipeline, int64_t capacity);

} // namespace windlass::schedule

#endif
