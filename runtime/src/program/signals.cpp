#include "signals.h"

#include <csignal>
#include <initializer_list>

namespace windlass::rt {

namespace {
// The only state that is global: a signal handler can reach nothing else.
volatile std::sig_atomic_t stop_signal = 0;

void remember(int signal) {
  if (signal == SIGTERM && stop_signal == SIGUSR1) {
    std::signal(SIGTERM, SIG_DFL);
    std::raise(SIGTERM); // comes when this handler has returned
  }
  stop_signal = signal;
}
} // namespace

void watch_signals() {
  stop_signal = 0;
  // A run goes on when nobody reads what it says any more.
  std::signal(SIGPIPE, SIG_IGN);
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) {
    struct sigaction action = {};
    action.sa_handler = remember;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART | (signal == SIGINT ? static_cast<int>(SA_RESETHAND) : 0);
    sigaction(signal, &action, nullptr);
  }
}

void ignore_signals() {
  for (int signal : {SIGINT, SIGTERM, SIGUSR1})
    std::signal(signal, SIG_IGN);
}

int requested_stop() { return stop_signal; }

} // namespace windlass::rt
