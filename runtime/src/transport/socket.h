// Connections of TCP between the processes of a job.
#ifndef WINDLASS_TRANSPORT_SOCKET_H
#define WINDLASS_TRANSPORT_SOCKET_H

#include "windlass/rt/status.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace windlass::rt {

/// The moment at which what does not come is given up.
using deadline = std::chrono::steady_clock::time_point;

/// Where a socket can be reached: an address of IPv4 or IPv6, in the bytes that the system takes, and a port.
struct socket_address {
  std::uint8_t bytes[28] = {};
  std::uint32_t length = 0;
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  /// The address for people, without its port.
  std::string text() const;
};

/// A socket, closed when it goes.
class tcp_socket {
public:
  tcp_socket() = default;
  explicit tcp_socket(int descriptor) : descriptor_(descriptor) {}
  tcp_socket(tcp_socket &&other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  tcp_socket &operator=(tcp_socket &&other) noexcept;
  tcp_socket(const tcp_socket &) = delete;
  tcp_socket &operator=(const tcp_socket &) = delete;
  ~tcp_socket();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  /// Waits for connections at `port` (0: one that is free), at all of this host's addresses of the family of `like`.
  status listen(const socket_address &like, std::uint16_t port);
  /// Returns the port at which this socket waits.
  std::uint16_t port() const;
  /// Takes the next connection; `from` is the other end.
  status accept(const deadline &end, tcp_socket &out, socket_address &from) const;
  /// Connects, again and again while nobody listens there.
  status connect(const socket_address &to, const deadline &end);
  /// Reads or writes all of `bytes` bytes.
  status read(void *data, std::int64_t bytes, const deadline &end) const;
  status write(const void *data, std::int64_t bytes, const deadline &end) const;
  /// Lets reads and writes not wait, small messages go at once, and an idle connection to a host that is gone end
  /// within half a minute.
  status prepare_for_messages() const;
  /// Returns false where what was sent has not been acknowledged for so long that the host must be gone.
  bool is_answered() const;

private:
  int descriptor_ = -1;
};

/// Finds the address of a host by its name.
status find_address(const std::string &host, std::uint16_t port, socket_address &out);

} // namespace windlass::rt

#endif
