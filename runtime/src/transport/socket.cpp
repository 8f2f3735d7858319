#include "socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace windlass::rt {

static_assert(sizeof(sockaddr_in6) <= sizeof(socket_address::bytes));

namespace {

status failed(const std::string &what) {
  return bad_input("cannot " + what + ": " + std::strerror(errno)).as(diagnostic::launch);
}

sockaddr *system_address(socket_address &address) { return reinterpret_cast<sockaddr *>(address.bytes); }
const sockaddr *system_address(const socket_address &address) {
  return reinterpret_cast<const sockaddr *>(address.bytes);
}

bool is_ipv6(const socket_address &address) { return system_address(address)->sa_family == AF_INET6; }

int new_socket(const socket_address &like) {
  return ::socket(system_address(like)->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

/// Waits until the socket can be read or written; returns false at the deadline.
bool wait_for(int descriptor, short events, const deadline &end) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0)
      return false;
    pollfd one = {descriptor, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1000)));
    if (ready > 0)
      return true;
    if (ready < 0 && errno != EINTR)
      return true; // the call that follows says why
  }
}

} // namespace

std::uint16_t socket_address::port() const {
  return ntohs(is_ipv6(*this) ? reinterpret_cast<const sockaddr_in6 *>(bytes)->sin6_port
                              : reinterpret_cast<const sockaddr_in *>(bytes)->sin_port);
}

void socket_address::set_port(std::uint16_t port) {
  (is_ipv6(*this) ? reinterpret_cast<sockaddr_in6 *>(bytes)->sin6_port
                  : reinterpret_cast<sockaddr_in *>(bytes)->sin_port) = htons(port);
}

std::string socket_address::text() const {
  char name[64] = "?";
  const void *from = is_ipv6(*this)
                         ? static_cast<const void *>(&reinterpret_cast<const sockaddr_in6 *>(bytes)->sin6_addr)
                         : &reinterpret_cast<const sockaddr_in *>(bytes)->sin_addr;
  ::inet_ntop(system_address(*this)->sa_family, from, name, sizeof name);
  return name;
}

tcp_socket &tcp_socket::operator=(tcp_socket &&other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

tcp_socket::~tcp_socket() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

status tcp_socket::listen(const socket_address &like, std::uint16_t port) {
  tcp_socket made(new_socket(like));
  socket_address any;
  any.length = like.length;
  system_address(any)->sa_family = system_address(like)->sa_family; // the address itself is 0: any
  any.set_port(port);
  const int on = 1;
  if (!made.is_open() || ::setsockopt(made.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(made.descriptor_, system_address(any), any.length) != 0 || ::listen(made.descriptor_, SOMAXCONN) != 0)
    return failed("wait for connections at port " + std::to_string(port));
  *this = std::move(made);
  return ok_status();
}

std::uint16_t tcp_socket::port() const {
  socket_address own;
  own.length = sizeof own.bytes;
  ::getsockname(descriptor_, system_address(own), &own.length);
  return own.port();
}

status tcp_socket::accept(const deadline &end, tcp_socket &out, socket_address &from) const {
  if (!wait_for(descriptor_, POLLIN, end))
    return status(status_code::stopped, "nobody connects").as(diagnostic::launch);
  from.length = sizeof from.bytes;
  tcp_socket taken(::accept4(descriptor_, system_address(from), &from.length, SOCK_CLOEXEC));
  if (!taken.is_open())
    return failed("take a connection");
  out = std::move(taken);
  return ok_status();
}

status tcp_socket::connect(const socket_address &to, const deadline &end) {
  while (true) {
    tcp_socket made(new_socket(to));
    // It waits for an answer no longer than there is time.
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    const std::int64_t wait = std::max<std::int64_t>(left.count(), 1);
    const timeval limit = {static_cast<time_t>(wait / 1000), static_cast<suseconds_t>(wait % 1000 * 1000)};
    if (!made.is_open() || ::setsockopt(made.descriptor_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0)
      return failed("make a socket");
    if (::connect(made.descriptor_, system_address(to), to.length) == 0) {
      *this = std::move(made);
      return ok_status();
    }
    // A process that is to listen there may start later, and so may its host's network.
    const bool may_come = errno == ECONNREFUSED || errno == EINTR || errno == ENETUNREACH || errno == EHOSTUNREACH ||
                          errno == ECONNRESET || errno == ETIMEDOUT;
    if (!may_come || std::chrono::steady_clock::now() >= end)
      return failed("connect to " + to.text() + " at port " + std::to_string(to.port()));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

status tcp_socket::read(void *data, std::int64_t bytes, const deadline &end) const {
  auto *to = static_cast<std::byte *>(data);
  while (bytes > 0) {
    if (!wait_for(descriptor_, POLLIN, end))
      return status(status_code::stopped, "the other end says nothing").as(diagnostic::launch);
    const ssize_t n = ::recv(descriptor_, to, static_cast<std::size_t>(bytes), 0);
    if (n == 0)
      return status(status_code::stopped, "the other end has closed the connection").as(diagnostic::launch);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
      return failed("read from a connection");
    to += std::max<ssize_t>(n, 0);
    bytes -= std::max<ssize_t>(n, 0);
  }
  return ok_status();
}

status tcp_socket::write(const void *data, std::int64_t bytes, const deadline &end) const {
  const auto *from = static_cast<const std::byte *>(data);
  while (bytes > 0) {
    if (!wait_for(descriptor_, POLLOUT, end))
      return status(status_code::stopped, "the other end takes nothing").as(diagnostic::launch);
    const ssize_t n = ::send(descriptor_, from, static_cast<std::size_t>(bytes), MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
      return failed("write to a connection");
    from += std::max<ssize_t>(n, 0);
    bytes -= std::max<ssize_t>(n, 0);
  }
  return ok_status();
}

status tcp_socket::prepare_for_messages() const {
  const int on = 1, idle = 5, interval = 3, probes = 5;
  const int flags = ::fcntl(descriptor_, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor_, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
      ::setsockopt(descriptor_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) != 0 ||
      ::setsockopt(descriptor_, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle) != 0 ||
      ::setsockopt(descriptor_, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval) != 0 ||
      ::setsockopt(descriptor_, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes) != 0)
    return failed("set up a connection");
  return ok_status();
}

bool tcp_socket::is_answered() const {
  constexpr std::uint32_t patience = 20000; // milliseconds
  tcp_info facts = {};
  socklen_t length = sizeof facts;
  // Not TCP_USER_TIMEOUT, which would also end a connection whose other end is alive and has no room, as it computes.
  return ::getsockopt(descriptor_, IPPROTO_TCP, TCP_INFO, &facts, &length) != 0 || facts.tcpi_unacked == 0 ||
         facts.tcpi_retransmits == 0 || facts.tcpi_last_ack_recv < patience;
}

status find_address(const std::string &host, std::uint16_t port, socket_address &out) {
  addrinfo wanted = {}, *found = nullptr;
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  if (code != 0)
    return bad_input("there is no host " + host + ": " + ::gai_strerror(code)).as(diagnostic::launch);
  // All ranks have to choose one family: IPv4 where the host has it.
  const addrinfo *chosen = nullptr;
  for (const addrinfo *each = found; each != nullptr; each = each->ai_next)
    if (each->ai_addrlen <= sizeof out.bytes &&
        (chosen == nullptr || (chosen->ai_family != AF_INET && each->ai_family == AF_INET)))
      chosen = each;
  if (chosen != nullptr) {
    out.length = chosen->ai_addrlen;
    std::memcpy(out.bytes, chosen->ai_addr, out.length);
    out.set_port(port);
  }
  ::freeaddrinfo(found);
  return chosen != nullptr ? ok_status()
                           : bad_input("the host " + host + " has no address of IPv4 or IPv6").as(diagnostic::launch);
}

} // namespace windlass::rt
