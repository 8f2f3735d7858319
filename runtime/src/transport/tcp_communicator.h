// A group of processes whose members are connected by TCP.
#ifndef WINDLASS_TRANSPORT_TCP_COMMUNICATOR_H
#define WINDLASS_TRANSPORT_TCP_COMMUNICATOR_H

#include "windlass/rt/communicator.h"

#include "socket.h"

#include <memory>
#include <vector>

namespace windlass::rt {

/// Makes the communicator of member `index`; `peers` has a connection to each other member, and none at `index`.
/// `ranks` are the members' ranks in the job, for people.
std::unique_ptr<communicator> make_tcp_communicator(std::vector<tcp_socket> peers, std::vector<std::int32_t> ranks,
                                                    std::int32_t index);

} // namespace windlass::rt

#endif
