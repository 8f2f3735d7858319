// Observing a dry run: the null back end calls an observer instead of computing.
#ifndef WINDLASS_RT_NULL_BACKEND_H
#define WINDLASS_RT_NULL_BACKEND_H

#include "windlass/rt/stream.h"

namespace windlass::rt {

/// A function called with the kernel's name on the stream's thread, in the stream's order; several threads may call it
/// at once.
using null_observer = void (*)(const stream &s, const char *kernel);

/// Installs an observer for all streams of the process; null removes it.
void set_null_observer(null_observer observer);

} // namespace windlass::rt

#endif
