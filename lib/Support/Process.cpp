#include "windlass/Support/Process.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace windlass;

extern char **environ;

std::string windlass::findProgram(const std::string &name) {
  auto found = llvm::sys::findProgramByName(name);
  return found ? *found : "";
}

static pid_t start(const std::vector<std::string> &words, const std::string &log, std::string &error) {
  std::vector<char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!log.empty()) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  }
  pid_t pid = -1;
  int failure = posix_spawnp(&pid, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    error = "cannot start '" + words.front() + "': " + std::strerror(failure);
    return -1;
  }
  return pid;
}

static ProcessResult waitFor(pid_t pid) {
  int state = 0;
  while (waitpid(pid, &state, 0) < 0)
    if (errno != EINTR)
      return {-1, std::string("lost a child process: ") + std::strerror(errno)};
  return {WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state), ""};
}

ProcessResult windlass::runProcess(const std::vector<std::string> &words, const std::string &log) {
  ProcessResult result;
  pid_t pid = start(words, log, result.error);
  return pid < 0 ? result : waitFor(pid);
}

std::string windlass::captureOutput(const std::vector<std::string> &words) {
  llvm::SmallString<128> log;
  if (llvm::sys::fs::createTemporaryFile("windlass", "txt", log))
    return "";
  runProcess(words, log.str().str());
  auto text = llvm::MemoryBuffer::getFile(log);
  std::string output = text ? (*text)->getBuffer().take_front(65536).str() : "";
  llvm::sys::fs::remove(log);
  return output;
}

static volatile sig_atomic_t trainingPid = 0;

static void askToSave(int) {
  if (trainingPid > 0)
    kill(static_cast<pid_t>(trainingPid), SIGUSR1);
}

/// Reads until the last writer has closed the pipe, and closes it.
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
  ProcessResult result;
  int ends[2] = {-1, -1};
  if (onError && pipe2(ends, O_CLOEXEC) != 0) {
    result.error = std::string("cannot make a pipe: ") + std::strerror(errno);
    return result;
  }
  // The terminal's Ctrl-C reaches the whole process group; mpirun would kill its ranks on it. So the child gets a group
  // of its own and hears of it from here.
  pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    if (onError)
      dup2(ends[1], STDERR_FILENO);
    std::vector<char *> arguments;
    for (const std::string &word : words)
      arguments.push_back(const_cast<char *>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  if (onError)
    close(ends[1]);
  if (pid < 0) {
    result.error = std::string("cannot start a process: ") + std::strerror(errno);
    if (onError)
      close(ends[0]);
    return result;
  }
  trainingPid = pid;
  struct sigaction action = {};
  action.sa_handler = askToSave;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
  if (onError)
    forward(ends[0], onError);
  result = waitFor(pid);
  trainingPid = 0;
  if (result.code == 127)
    result = {-1, "cannot start '" + words.front() + "'"};
  return result;
}
