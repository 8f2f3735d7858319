#include "windlass/Support/Guard.h"

#include "windlass/Support/LauncherVariables.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace windlass;

namespace {

/// The signals that people and systems send to processes to end them. The guard must outlive them.
constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1};

/// All that a guard needs, made before it is forked: a process with threads may have been forked while one of them
/// held a lock, so the guard allocates nothing.
struct Start {
  std::vector<char *> words, environment;
  Streams streams;
  int commands, report;
};

/// A file of /proc, which is read in pieces.
class ProcFile {
public:
  ProcFile(pid_t process, const char *name) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/%s", process, name);
    file = open(path, O_RDONLY | O_CLOEXEC);
  }
  ~ProcFile() {
    if (file >= 0)
      close(file);
  }
  /// Returns the next line, cut where it is too long; null at the end.
  const char *nextLine() {
    std::memmove(text, text + used, filled - used);
    filled -= used;
    ssize_t got;
    while (filled < sizeof text - 1 && (got = read(file, text + filled, sizeof text - 1 - filled)) > 0)
      filled += static_cast<size_t>(got);
    if (filled == 0)
      return nullptr;
    text[filled] = 0;
    char *end = static_cast<char *>(std::memchr(text, '\n', filled));
    used = end ? static_cast<size_t>(end - text) + 1 : filled;
    if (end)
      *end = 0;
    return text;
  }

private:
  int file;
  char text[4096];
  size_t filled = 0, used = 0;
};

/// The first children of a process's main thread; launchers and builders start theirs from it.
struct Children {
  std::array<pid_t, 256> pids;
  size_t count = 0;

  explicit Children(pid_t process) {
    char name[32];
    std::snprintf(name, sizeof name, "task/%d/children", process);
    ProcFile file(process, name);
    const char *line = file.nextLine();
    char *end = nullptr;
    for (const char *at = line; at && count < pids.size(); at = end) {
      long pid = std::strtol(at, &end, 10);
      if (end == at)
        break;
      pids[count++] = static_cast<pid_t>(pid);
    }
  }
};

/// Open MPI leaves its segments of shared memory behind when all of its processes are killed: they go while they are
/// still known by the processes that have them mapped.
void removeSegments(pid_t process, int depth) {
  constexpr char kSegment[] = "/dev/shm/vader_segment.";
  ProcFile maps(process, "maps");
  while (const char *line = maps.nextLine())
    if (const char *path = std::strstr(line, kSegment))
      unlink(path);
  if (depth == 0)
    return;
  Children children(process);
  for (size_t i = 0; i < children.count; ++i)
    removeSegments(children.pids[i], depth - 1);
}

/// Kills and reaps everything below this process, which must be a subreaper: what a killed child had started becomes
/// its own child, so that all are met in turn.
void endChildren() {
  while (true) {
    Children children(getpid());
    if (children.count == 0)
      return;
    for (size_t i = 0; i < children.count; ++i)
      removeSegments(children.pids[i], 3);
    for (size_t i = 0; i < children.count; ++i)
      kill(children.pids[i], SIGKILL);
    for (size_t i = 0; i < children.count; ++i)
      waitpid(children.pids[i], nullptr, 0);
  }
}

/// Runs the program in its own process: never returns.
[[noreturn]] void runProgram(const Start &start, const struct sigaction *former) {
  setpgid(0, 0);
  pid_t guard = getppid();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != guard)
    _exit(127);
  for (size_t i = 0; i < std::size(kEndingSignals); ++i)
    sigaction(kEndingSignals[i], &former[i], nullptr);
  // Whoever starts a guard may have blocked signals.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (auto [from, to] : {std::pair(start.streams.input, STDIN_FILENO),
                          {start.streams.output, STDOUT_FILENO},
                          {start.streams.error, STDERR_FILENO}})
    if (from >= 0)
      dup2(from, to);
  execve(start.words.front(), start.words.data(), start.environment.data());
  int failure = errno;
  (void)!write(start.report, &failure, sizeof failure);
  _exit(127);
}

int64_t millisecondsNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

/// The guard's actions on its program.
class Watch {
public:
  explicit Watch(pid_t program) : program(program) {}

  /// Reaps what has ended.
  void reap() {
    int state;
    for (pid_t pid; (pid = waitpid(-1, &state, WNOHANG)) > 0;)
      if (pid == program) {
        isRunning = false;
        hasCrashed = WIFSIGNALED(state);
        code = hasCrashed ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
      }
  }

  void apply(Guard::Ask what) {
    switch (what) {
    case Guard::Ask::save:
      kill(program, SIGUSR1);
      askAgainAt = millisecondsNow() + askInterval;
      break;
    case Guard::Ask::end:
      askAgainAt = -1;
      if (killAt < 0)
        killAt = millisecondsNow() + Guard::kPatienceSeconds * 1000;
      kill(-program, SIGTERM);
      break;
    case Guard::Ask::kill:
      killAt = 0;
      break;
    }
    kill(-program, SIGCONT);
  }

  /// A launcher drops a signal that comes before it has started its ranks: it is sent again, ever more rarely.
  void askAgain() {
    if (askAgainAt < 0 || millisecondsNow() < askAgainAt)
      return;
    askInterval *= 2;
    apply(Guard::Ask::save);
  }

  /// Returns how many milliseconds to wait for news; -1 for ever.
  int getTimeout() const {
    int64_t next = killAt < 0 ? askAgainAt : killAt;
    return next < 0 ? -1 : static_cast<int>(std::max<int64_t>(0, next - millisecondsNow()));
  }
  bool isToBeKilled() const { return killAt >= 0 && millisecondsNow() >= killAt; }

  /// Ends what is left. A program that ends by itself may leave something running, such as the server of a compiler
  /// cache.
  int finish() {
    if (isRunning || hasCrashed || killAt >= 0)
      endChildren();
    return isRunning ? 128 + SIGKILL : code;
  }

  bool isRunning = true;

private:
  pid_t program;
  bool hasCrashed = false;
  int code = 0;
  /// Times in milliseconds; -1 for never.
  int64_t killAt = -1, askAgainAt = -1, askInterval = 1000;
};

/// Runs the guard in its own process: never returns.
[[noreturn]] void runGuard(const Start &start) {
  // A group of its own: a terminal's Ctrl-C must reach windlass alone, which decides what becomes of the program.
  setpgid(0, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // A guard that was stopped goes on when windlass is gone.
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  struct sigaction ignore = {}, former[std::size(kEndingSignals)];
  ignore.sa_handler = SIG_IGN;
  for (size_t i = 0; i < std::size(kEndingSignals); ++i)
    sigaction(kEndingSignals[i], &ignore, &former[i]);
  std::signal(SIGCHLD, SIG_DFL);
  pid_t program = fork();
  if (program == 0)
    runProgram(start, former);
  if (program < 0) {
    int failure = errno;
    (void)!write(start.report, &failure, sizeof failure);
    _exit(127);
  }
  setpgid(program, program);
  close(start.report);

  sigset_t childEnded;
  sigemptyset(&childEnded);
  sigaddset(&childEnded, SIGCHLD);
  int news = signalfd(-1, &childEnded, SFD_CLOEXEC | SFD_NONBLOCK);
  Watch watch(program);
  pollfd files[] = {{news, POLLIN, 0}, {start.commands, POLLIN, 0}};
  while (watch.isRunning && !watch.isToBeKilled()) {
    if (poll(files, 2, watch.getTimeout()) < 0) {
      if (errno == EINTR)
        continue;
      break;
    }
    watch.askAgain();
    if (files[0].revents != 0) {
      signalfd_siginfo info;
      while (read(news, &info, sizeof info) > 0)
        ;
      watch.reap();
    }
    if (files[1].revents == 0)
      continue;
    char what;
    if (read(start.commands, &what, 1) == 1) {
      watch.apply(static_cast<Guard::Ask>(what));
      continue;
    }
    // Windlass is gone.
    watch.apply(Guard::Ask::end);
    files[1].fd = -1;
  }
  _exit(watch.finish());
}

std::vector<char *> pointersTo(const std::vector<std::string> &texts) {
  std::vector<char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(const_cast<char *>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string cannotStart(const std::string &program, int failure) {
  std::string reason = failure == ENOEXEC ? "it is no program" : std::strerror(failure);
  return "cannot start '" + program + "': " + reason;
}

} // namespace

std::string Guard::start(const std::vector<std::string> &words, const Streams &streams) {
  std::vector<std::string> environment = environmentOfPrograms();
  int command[2], report[2];
  if (pipe2(command, O_CLOEXEC) != 0)
    return cannotStart(words.front(), errno);
  if (pipe2(report, O_CLOEXEC) != 0) {
    close(command[0]);
    close(command[1]);
    return cannotStart(words.front(), errno);
  }
  // Where the guard itself is killed, its program becomes a child of this process.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  Start start = {pointersTo(words), pointersTo(environment), streams, command[0], report[1]};
  sigset_t all, former;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  process = fork();
  int failure = errno;
  if (process == 0) {
    close(command[1]);
    close(report[0]);
    runGuard(start);
  }
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  close(command[0]);
  close(report[1]);
  commands = command[1];
  ssize_t got = -1;
  if (process > 0) {
    setpgid(process, process);
    failure = 0;
    while ((got = read(report[0], &failure, sizeof failure)) < 0 && errno == EINTR)
      ;
  }
  close(report[0]);
  if (process > 0 && got <= 0)
    return "";
  if (process > 0)
    wait();
  return cannotStart(words.front(), failure);
}

void Guard::ask(Ask what) {
  if (process <= 0)
    return;
  if (what != Ask::save)
    wasEnded = true;
  char letter = static_cast<char>(what);
  (void)!write(commands, &letter, 1);
  kill(process, SIGCONT);
}

ProcessResult Guard::wait() {
  int state = 0;
  pid_t waited;
  while ((waited = waitpid(process, &state, 0)) < 0 && errno == EINTR)
    ;
  int failure = errno;
  process = -1;
  close(commands);
  if (waited < 0)
    return {-1, std::string("lost a child process: ") + std::strerror(failure)};
  if (WIFEXITED(state))
    return {WEXITSTATUS(state), "", wasEnded};
  endChildren();
  return {128 + WTERMSIG(state), "", wasEnded};
}

Guard::~Guard() {
  if (process <= 0)
    return;
  ask(Ask::kill);
  wait();
}
