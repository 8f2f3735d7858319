#include "windlass/Programs/Hosts.h"

#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/InputFile.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/Process.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace windlass;
using llvm::StringRef;
using llvm::Twine;

constexpr int64_t kMostRanks = 65536, kMostHostFileBytes = 1 << 20;

/// Adds a host. Its name becomes a word of a command line, and of one that a shell of another host reads.
static llvm::Error addHost(StringRef name, StringRef ranks, std::vector<RankHost> &hosts) {
  bool isName = !name.empty() && llvm::isAlnum(name.front()) &&
                llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '.' || c == '-' || c == '_'; });
  if (!isName)
    return makeError(printable(name) + " is no name or IPv4 address of a host");
  RankHost host = {name.str()};
  if (ranks.getAsInteger(10, host.ranks) || host.ranks < 1 || host.ranks > kMostRanks)
    return makeError("the host " + printable(name) + " is given " + printable(ranks) +
                     " ranks, which is no number from 1 to " + Twine(kMostRanks));
  if (llvm::any_of(hosts, [&](const RankHost &other) { return other.name == host.name; }))
    return makeError("the host " + printable(name) + " is named twice; give it all of its ranks at once");
  if (countRanks(hosts) + host.ranks > kMostRanks)
    return makeError("the hosts have more than " + Twine(kMostRanks) + " ranks, the most of a run");
  hosts.push_back(std::move(host));
  return llvm::Error::success();
}

static llvm::Error readHostFile(StringRef path, std::vector<RankHost> &hosts) {
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
    llvm::Error added = hasSlots || rest.empty() ? addHost(name, hasSlots ? rest : "1", hosts)
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
  std::vector<RankHost> hosts;
  if (text.contains('/')) {
    if (llvm::Error error = readHostFile(text, hosts))
      return std::move(error);
    return hosts;
  }
  for (StringRef each : llvm::split(text, ',')) {
    auto [name, ranks] = each.split(':');
    if (llvm::Error error = addHost(name, each.contains(':') ? ranks : "1", hosts))
      return std::move(error);
  }
  return hosts;
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

/// Runs a command on another host, as Open MPI starts its daemon there. Returns nothing where it succeeded, else what
/// was printed.
static std::string runOnHost(const std::string &host, const std::string &command) {
  constexpr StringRef kDone = "windlass-done";
  const char *agent = getenv("OMPI_MCA_plm_rsh_agent");
  std::vector<std::string> words;
  for (StringRef word :
       llvm::split(agent ? agent : "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5", ' '))
    words.push_back(word.str());
  std::string program = findProgram(words.front());
  if (program.empty())
    return words.front() + " is not installed here";
  words.front() = program;
  words.insert(words.end(), {host, command + " && echo " + kDone.str()});
  std::string printed = captureOutput(words);
  if (StringRef(printed).rtrim().ends_with(kDone))
    return "";
  return printed.empty() ? "it said nothing" : oneLine(StringRef(printed).trim());
}

static rt::status checkEach(llvm::ArrayRef<RankHost> hosts,
                            llvm::function_ref<rt::status(const std::string &name)> check) {
  for (const RankHost &host : hosts)
    if (!isThisMachine(host.name))
      if (rt::status checked = check(host.name); !checked.is_ok())
        return std::move(checked).as(Code::launch);
  return {};
}

rt::status windlass::checkHosts(llvm::ArrayRef<RankHost> hosts) {
  return checkEach(hosts, [](const std::string &name) -> rt::status {
    if (std::string said = runOnHost(name, "true"); !said.empty())
      return rt::bad_input("no command can be run on the host " + printable(name) + " of --hosts: " + said + "; 'ssh " +
                           name + " true' must succeed without a question");
    if (!runOnHost(name, "command -v orted").empty())
      return rt::bad_input("the host " + printable(name) +
                           " of --hosts has no orted: install openmpi-bin there, of the version that is here");
    return {};
  });
}

rt::status windlass::checkHostsSee(llvm::ArrayRef<RankHost> hosts, const std::string &path) {
  // In single quotes, in which a shell leaves all but the quote as it is.
  std::string quoted = path;
  for (size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4)
    quoted.replace(at, 1, "'\\''");
  return checkEach(hosts, [&](const std::string &name) -> rt::status {
    if (!runOnHost(name, "test -x '" + quoted + "'").empty())
      return rt::bad_input("the host " + printable(name) + " of --hosts does not have the program, " + printable(path) +
                           "; set XDG_CACHE_HOME to a folder that all hosts share");
    return {};
  });
}
