#include "windlass/Programs/Hosts.h"

#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/InputFile.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/Process.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <cstdlib>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace windlass;
using llvm::StringRef;
using llvm::Twine;

constexpr int64_t kMostRanks = 65536, kMostHostFileBytes = 1 << 20;

namespace {

class HostReader {
public:
  /// Adds a host. Its name becomes a word of a command line, and of one that a shell of another host reads.
  llvm::Error add(StringRef name, StringRef ranks);
  /// Adds the hosts of a file.
  llvm::Error readFile(StringRef path);
  std::vector<RankHost> hosts;

private:
  llvm::StringSet<> names;
  int64_t total = 0;
};

} // namespace

llvm::Error HostReader::add(StringRef name, StringRef ranks) {
  bool isName = !name.empty() && llvm::isAlnum(name.front()) &&
                llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '.' || c == '-' || c == '_'; });
  if (!isName)
    return makeError(printable(name) + " is no name or IPv4 address of a host");
  RankHost host = {name.str()};
  if (ranks.getAsInteger(10, host.ranks) || host.ranks < 1 || host.ranks > kMostRanks)
    return makeError("the host " + printable(name) + " is given " + printable(ranks) +
                     " ranks, which is no number from 1 to " + Twine(kMostRanks));
  if (!names.insert(name).second)
    return makeError("the host " + printable(name) + " is named twice; give it all of its ranks at once");
  if ((total += host.ranks) > kMostRanks)
    return makeError("the hosts have more than " + Twine(kMostRanks) + " ranks, the most of a run");
  hosts.push_back(std::move(host));
  return llvm::Error::success();
}

llvm::Error HostReader::readFile(StringRef path) {
  auto text = readInputFile(path, kMostHostFileBytes, "host file");
  if (!text)
    return text.takeError();
  int64_t number = 0;
  for (StringRef line : llvm::split((*text)->getBuffer(), '\n')) {
    ++number;
    auto [name, rest] = llvm::getToken(line.split('#').first);
    rest = rest.trim();
    if (name.empty())
      continue;
    bool hasSlots = rest.consume_front("slots=");
    llvm::Error added = hasSlots || rest.empty() ? add(name, hasSlots ? rest : "1")
                                                 : makeError("has " + printable(rest) + " behind the host " +
                                                             printable(name) + ": only slots=N may stand there");
    if (added)
      return makeError(printable(path) + ", line " + Twine(number) + ": " + llvm::toString(std::move(added)));
  }
  if (hosts.empty())
    return makeError(printable(path) + " names no host; write a line such as 'node1 slots=4' for each");
  return llvm::Error::success();
}

llvm::Expected<std::vector<RankHost>> windlass::readHosts(StringRef text) {
  HostReader reader;
  if (text.contains('/')) {
    if (llvm::Error error = reader.readFile(text))
      return std::move(error);
    return std::move(reader.hosts);
  }
  for (StringRef each : llvm::split(text, ',')) {
    auto [name, ranks] = each.split(':');
    if (llvm::Error error = reader.add(name, each.contains(':') ? ranks : "1"))
      return std::move(error);
  }
  return std::move(reader.hosts);
}

int64_t windlass::countRanks(llvm::ArrayRef<RankHost> hosts) {
  int64_t ranks = 0;
  for (const RankHost &host : hosts)
    ranks += host.ranks;
  return ranks;
}

std::string windlass::listOf(llvm::ArrayRef<RankHost> hosts) {
  return llvm::join(
      llvm::map_range(hosts, [](const RankHost &host) { return host.name + ":" + std::to_string(host.ranks); }), ",");
}

/// Returns whether a name is one of this machine: only to its own addresses a socket can be bound.
static bool isThisMachine(const std::string &name) {
  addrinfo wanted = {}, *found = nullptr;
  wanted.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0)
    return false;
  bool isOwn = false;
  for (addrinfo *each = found; each && !isOwn; each = each->ai_next)
    if (int socket = ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, 0); socket >= 0) {
      isOwn = bind(socket, each->ai_addr, each->ai_addrlen) == 0;
      close(socket);
    }
  freeaddrinfo(found);
  return isOwn;
}

/// Runs a command on another host, in the way in which Open MPI starts its daemon there; fails where it cannot be run.
/// Returns what it prints.
static llvm::Expected<std::string> askHost(const std::string &host, const std::string &command) {
  constexpr StringRef kEnd = "windlass-end";
  const char *agent = getenv("OMPI_MCA_plm_rsh_agent");
  std::vector<std::string> words;
  for (StringRef word :
       llvm::split(agent ? agent : "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5", ' '))
    words.push_back(word.str());
  std::string program = findProgram(words.front());
  if (program.empty())
    return makeError(printable(words.front()) + ", which starts ranks on other hosts, is not installed here");
  words.front() = program;
  words.insert(words.end(), {host, command + "; echo " + kEnd.str()});
  std::string printed = captureOutput(words);
  StringRef said = StringRef(printed).trim();
  if (!said.consume_back(kEnd))
    return makeError("no command can be run on the host " + printable(host) + " of --hosts" +
                     (said.empty() ? "" : ": " + oneLine(said)) + "; 'ssh " + host +
                     " true' must succeed without a question");
  return said.trim().str();
}

/// Compares what a command prints on all hosts but this machine with what is expected.
static rt::status compareAnswers(llvm::ArrayRef<RankHost> hosts, const std::string &command, StringRef expected,
                                 llvm::function_ref<std::string(const RankHost &host, StringRef answer)> explain) {
  for (const RankHost &host : hosts) {
    if (isThisMachine(host.name))
      continue;
    llvm::Expected<std::string> answer = askHost(host.name, command);
    if (!answer)
      return rt::bad_input(llvm::toString(answer.takeError())).as(Code::launch);
    if (*answer != expected)
      return rt::bad_input(explain(host, *answer)).as(Code::launch);
  }
  return {};
}

rt::status windlass::checkHosts(llvm::ArrayRef<RankHost> hosts) {
  std::string own = captureOutput({findProgram("mpirun"), "--version"});
  StringRef version = StringRef(own).split('\n').first;
  return compareAnswers(hosts, "mpirun --version | head -n 1", version, [&](const RankHost &host, StringRef answer) {
    return "the host " + printable(host.name) + " of --hosts answers 'mpirun --version' by " + printable(answer) +
           ", where this machine says " + printable(version) + "; install openmpi-bin of this version there";
  });
}

rt::status windlass::checkHostsSee(llvm::ArrayRef<RankHost> hosts, const std::string &path) {
  // In single quotes, in which a shell leaves all but the quote as it is.
  std::string quoted = path;
  for (size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4)
    quoted.replace(at, 1, "'\\''");
  return compareAnswers(hosts, "test -x '" + quoted + "' && echo there", "there", [&](const RankHost &host, StringRef) {
    return "the host " + printable(host.name) + " of --hosts does not have the program, " + printable(path) +
           "; set XDG_CACHE_HOME to a folder that all hosts share";
  });
}
