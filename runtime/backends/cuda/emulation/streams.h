// The emulated device's commands and the orders in which they run.
//
// As a rule a command is done when it is given. With WINDLASS_EMULATED_SEED (or `draw_orders`), one thread runs the
// commands of all streams instead, later than they were given: those of a stream one after another, and otherwise any
// that no event holds, drawn from the seed; and so are the orders of a launch's blocks and of a block's threads, and
// memory is full of NaN until it is written. What a program lets to chance then differs from seed to seed. Commands of
// a recorded graph keep the order in which they were recorded.
#ifndef WINDLASS_BACKENDS_CUDA_EMULATION_STREAMS_H
#define WINDLASS_BACKENDS_CUDA_EMULATION_STREAMS_H

#include <cstddef>
#include <cstdint>
#include <functional>

struct emulated_stream;

namespace windlass::rt::cuda::emulation {

/// Does a command, and returns whether it is through. One that needs other ranks, who have not come to it, waits for
/// them if it may, and else is called again later.
using command = std::function<bool(bool may_wait)>;

/// Gives the stream a command, or does it at once; records it where the stream records. Null is the device's own
/// stream.
void give(emulated_stream *stream, command next);

/// Sets the seed of the orders for commands that are given from now on; 0: each is done at once. Nothing may be left to
/// be done.
void draw_orders(std::uint64_t seed);
bool has_drawn_orders();

/// Puts 0 to `count` - 1 into `out`, in an order that is drawn where orders are.
void draw_order(unsigned count, unsigned *out);

/// Opens the device's memory to the process as long as it lives.
struct open_memory {
  open_memory();
  ~open_memory();
};

} // namespace windlass::rt::cuda::emulation

#endif
