// What a dry run can watch: the null back end calls an observer instead of computing.
#ifndef WINDLASS_RT_NULL_BACKEND_H
#define WINDLASS_RT_NULL_BACKEND_H

#include "windlass/rt/stream.h"

namespace windlass::rt {

/// Called on the stream's thread, in the stream's order, with the kernel's name; may be called by several threads.
using null_observer = void (*)(const stream &s, const char *kernel);

/// Installs an observer for all streams of the process, or none.
void set_null_observer(null_observer observer);

} // namespace windlass::rt

#endif
