// Requests to stop: SIGINT, SIGTERM and SIGUSR1 let the step end, save and leave with code 7.
#ifndef WINDLASS_RT_SRC_PROGRAM_SIGNALS_H
#define WINDLASS_RT_SRC_PROGRAM_SIGNALS_H

namespace windlass::rt {

/// Installs the handlers. A second SIGINT ends the process at once, as users expect of a second Ctrl-C, and so does
/// SIGTERM after SIGUSR1, which is how `windlass train` hands a second Ctrl-C on.
void watch_signals();
/// Ignores signals when a run is over: nothing is left to save or to cut short.
void ignore_signals();
/// Returns the signal that asked this process to stop, or 0.
int requested_stop();

} // namespace windlass::rt

#endif
