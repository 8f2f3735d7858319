#include "windlass/Support/Process.h"

#include "llvm/Support/Program.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace windlass;

std::string windlass::findProgram(const std::string &name) {
  auto found = llvm::sys::findProgramByName(name);
  return found ? *found : "";
}

namespace {

/// A file descriptor that is closed with this object.
struct Descriptor {
  int number;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(const Descriptor &) = delete;
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
};

} // namespace

static ProcessResult runWith(const std::vector<std::string> &words, const Streams &streams) {
  Guard guard;
  if (std::string error = guard.start(words, streams); !error.empty())
    return {-1, error};
  return guard.wait();
}

ProcessResult windlass::runProcess(const std::vector<std::string> &words, const std::string &log) {
  if (log.empty())
    return runWith(words, {});
  Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Descriptor file(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (file.number < 0)
    return {-1, "cannot write '" + log + "': " + std::strerror(errno)};
  return runWith(words, {nothing.number, file.number, file.number});
}

std::string windlass::captureOutput(const std::vector<std::string> &words) {
  Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Descriptor file(memfd_create("windlass", MFD_CLOEXEC));
  if (file.number < 0)
    return "";
  runWith(words, {nothing.number, file.number, file.number});
  std::string output(65536, '\0');
  ssize_t length = pread(file.number, output.data(), output.size(), 0);
  output.resize(length > 0 ? static_cast<size_t>(length) : 0);
  return output;
}

namespace {

/// Hands signals on to the program that trains, for as long as this lives. A signal that windlass was started to
/// ignore, as by nohup, stays ignored.
class TrainingSignals {
public:
  TrainingSignals() {
    sigemptyset(&handled);
    for (int signal : kSignals)
      sigaddset(&handled, signal);
    pthread_sigmask(SIG_BLOCK, &handled, &formerMask);
  }
  /// Makes signals reach `guard` from here on, those included that have come since this was made.
  void handOnTo(Guard &guard) {
    training = &guard;
    interrupts = 0;
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      sigaction(kSignals[i], nullptr, &former[i]);
      struct sigaction action = {};
      action.sa_handler = handOn;
      action.sa_mask = handled;
      if (former[i].sa_handler != SIG_IGN)
        sigaction(kSignals[i], &action, nullptr);
    }
    pthread_sigmask(SIG_SETMASK, &formerMask, nullptr);
  }
  ~TrainingSignals() {
    if (training)
      for (size_t i = 0; i < std::size(kSignals); ++i)
        sigaction(kSignals[i], &former[i], nullptr);
    training = nullptr;
    pthread_sigmask(SIG_SETMASK, &formerMask, nullptr);
  }

private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGQUIT};

  static void handOn(int signal) {
    int before = errno;
    if (signal == SIGINT)
      ++interrupts;
    Guard::Ask what = signal == SIGQUIT ? Guard::Ask::end : Guard::Ask::save;
    if (signal == SIGINT && interrupts > 1)
      what = interrupts == 2 ? Guard::Ask::end : Guard::Ask::kill;
    training->ask(what);
    if (signal == SIGINT && isatty(STDERR_FILENO)) {
      const char *text = what == Guard::Ask::save  ? "\nwindlass: saving; Ctrl-C again ends the run unsaved\n"
                         : what == Guard::Ask::end ? "\nwindlass: ending the run; Ctrl-C again kills it\n"
                                                   : "\nwindlass: killing the run\n";
      (void)!write(STDERR_FILENO, text, std::strlen(text));
    }
    errno = before;
  }

  // The only state that is global: a signal handler can reach nothing else.
  static Guard *volatile training;
  static volatile sig_atomic_t interrupts;
  sigset_t handled, formerMask;
  struct sigaction former[std::size(kSignals)];
};

Guard *volatile TrainingSignals::training = nullptr;
volatile sig_atomic_t TrainingSignals::interrupts = 0;

} // namespace

/// Passes on what a pipe gives until its last writer has closed it, and closes it.
static void forward(int from, const std::function<void(llvm::StringRef)> &to) {
  char buffer[4096];
  while (true) {
    ssize_t bytes = read(from, buffer, sizeof buffer);
    if (bytes > 0)
      to(llvm::StringRef(buffer, static_cast<size_t>(bytes)));
    else if (bytes == 0 || errno != EINTR)
      break;
  }
  close(from);
}

ProcessResult windlass::runTraining(const std::vector<std::string> &words,
                                    const std::function<void(llvm::StringRef)> &onError) {
  int ends[2] = {-1, -1};
  if (onError && pipe2(ends, O_CLOEXEC) != 0)
    return {-1, std::string("cannot make a pipe: ") + std::strerror(errno)};
  Guard guard;
  TrainingSignals signals;
  Streams streams;
  streams.error = ends[1];
  std::string error = guard.start(words, streams);
  if (onError)
    close(ends[1]);
  if (!error.empty()) {
    if (onError)
      close(ends[0]);
    return {-1, error};
  }
  signals.handOnTo(guard);
  if (onError)
    forward(ends[0], onError);
  return guard.wait();
}
