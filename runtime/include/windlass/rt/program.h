// The constant data that an emitted program gives the runtime: tables and step functions.
#ifndef WINDLASS_RT_PROGRAM_H
#define WINDLASS_RT_PROGRAM_H

#include "windlass/rt/attention_shape.h"
#include "windlass/rt/communicator.h"
#include "windlass/rt/place.h"
#include "windlass/rt/products.h"
#include "windlass/rt/span.h"
#include "windlass/rt/status.h"
#include "windlass/rt/view.h"

namespace windlass::rt {

class context;

/// The work that the members of an axis share: that of single operators, the micro-batches of a step, the graph's
/// batch, or experts.
enum class axis_role : std::int32_t { model, replica, batch, expert };

/// A mesh axis; a member's coordinate on it follows from row-major order of the axes. The axes of replicas have P
/// members together: the groups of ranks, numbered in the same order.
struct axis {
  const char *name = nullptr;
  std::int32_t size = 1;
  axis_role role = axis_role::model;
};

/// A cut of a dimension over an axis: the whole extent D is `blocks` equal blocks, each cut into n equal parts, where n
/// is the axis's size. A rank with coordinate c holds the c-th part of each block: it holds index i if (i / (D /
/// (blocks * n))) % n == c for every split of the dimension. `blocks` is 1 for an outermost cut; it is the size of
/// everything major to the cut, such as 3 for the heads of a fused weight of [768, 3 * heads * 64].
///
/// Splits whose dim is `flat_dim` cut what the splits of dims leave: as one dim, in row-major order, filled with zeros
/// to a multiple of their axes' members. Their `blocks` is the number of members of the outer flat splits.
struct split {
  std::int32_t dim = 0;
  std::int32_t axis = 0;
  std::int64_t blocks = 1;
};

constexpr std::int32_t flat_dim = -1;

enum class source_kind : std::int32_t { none, packed, external };

/// The source of the initial bytes of a parameter.
struct source {
  source_kind kind = source_kind::none; ///< packed: `params.safetensors` beside the program, by name; external: below
                                        ///< `--weights`
  const char *file = nullptr;           ///< external: relative path
  std::int64_t offset = 0;              ///< external: bytes
  std::int64_t length = 0;
  element_type type = element_type::f32; ///< external: the type of the bytes; a packed file has its own
};

/// The way in which `--init random` fills a parameter.
enum class initializer : std::int32_t { zeros, ones, normal };

/// A parameter of the model, whichever positions hold it.
struct parameter_entry {
  const char *name = nullptr;            ///< logical name: the ONNX initializer's
  element_type type = element_type::f32; ///< the type of its master, which checkpoints hold
  span<std::int64_t> sizes;              ///< the sizes of the whole tensor
  source bytes;
  initializer random = initializer::zeros;
  bool is_trainable = false; ///< false: a buffer or a frozen weight
  bool decays = false;
};

/// The values that an input takes from a token file when `--inputs` does not say. An input fed `random` is not one of
/// the model's: it holds the keys of the dropouts, i64 [batch, dropouts], which the program makes, and comes last.
enum class feed : std::int32_t { none, tokens, next, random };

/// An input of the model, for one micro-batch.
struct input_entry {
  const char *name = nullptr; ///< logical name: the ONNX input's
  element_type type = element_type::f32;
  span<std::int64_t> sizes; ///< the sizes of the whole tensor
  feed default_feed = feed::none;
  std::int64_t vocabulary = 0; ///< ids must be below it; 0: unknown
};

/// The labels over which the step's loss is a mean, in all its micro-batches: the elements of a box of an input that
/// are not `ignored`. Without sizes, the loss is the mean of the micro-batches' losses.
struct counted_labels {
  std::int32_t input = 0;
  std::int64_t ignored = 0;
  span<std::int64_t> starts, sizes;
};

/// Runtime scalars, f32, written into the arena before the functions that read them.
enum class scalar : std::int32_t {
  learning_rate,
  one_minus_beta1, // in f32 a beta near 1 would have lost the digits of the difference
  one_minus_beta2,
  epsilon,
  weight_decay,
  momentum,
  clip_norm,
  bias_correction1,
  bias_correction2,
  loss_scale, ///< a program with this scalar computes gradients of the loss times it
  inverse_loss_scale,
  inverse_label_count, ///< 1 over the labels of the step: see `counted_labels`
  ema_rate,            ///< a program with this scalar keeps a moving average of its weights
  inverse_sqrt_step,   ///< of the number of the update, from 1
  second_moment_rate   ///< at which Adafactor's means of squares move
};

enum class optimizer : std::int32_t { adamw, adafactor, adam, lamb, lion, muon, sgd };

// The tables of a position. Each of its ranks does the same with its own parts of tensors. `place`s are in the
// program's arenas; the axis of a split or a communicator is one of the position's mesh.

/// An arena of a program: one allocation of `bytes` bytes.
struct arena_entry {
  memory_kind kind = memory_kind::device;
  std::int64_t bytes = 0;
  const char *name = nullptr; ///< the name in errors and records
};

/// A parameter of the job as this position's step reads it, and its master copy, which the optimizer and checkpoints
/// use: the master has the parameter's type, and the same place and splits where both are one buffer. Several
/// positions that have a parameter hold copies, which agree.
struct parameter_placement {
  std::int32_t parameter = 0; ///< its number in the job
  element_type type = element_type::f32;
  span<split> splits;
  place at;
  span<split> master_splits;
  place master = no_place;
};

/// A tensor of optimizer state, f32, stored as `<parameter>/<suffix>`; zero at the start. One that has the shape of its
/// parameter is cut as its master; another is whole on every rank.
struct state_entry {
  std::int32_t parameter = 0;   ///< its number in the job; this position has it
  const char *suffix = nullptr; ///< exp_avg, exp_avg_sq, momentum_buffer, row_var
  place at;
  span<std::int64_t> sizes = {}; ///< empty: those of the parameter
};

/// The reduced gradient of a parameter: that of the mean of the G losses, before clipping; valid between reduce and
/// update.
struct gradient_entry {
  std::int32_t parameter = 0; ///< its number in the job
  span<split> splits;
  place at;
  element_type type = element_type::f32; ///< f32 or bf16
};

/// An input as a chunk reads it. In slot s of the chunk it begins `s * slot_stride` bytes after `at`.
struct input_placement {
  std::int32_t input = 0; ///< its number in the job
  std::int32_t chunk = 0;
  span<split> splits;
  place at;
  std::int64_t slot_stride = 0;
};

struct scalar_entry {
  scalar kind = scalar::learning_rate;
  place at;
};

/// The commands of a stream: the kernels of the step, the collectives of one communicator, sends and receives of
/// actions, copies from host memory to the device's or back, kernels on host memory, which the host's threads run, or
/// copies from the disk to host memory or back.
enum class stream_kind : std::int32_t { compute, communicator, peer, h2d, d2h, host, disk_read, disk_write };

/// Whether the streams of a kind copy between the disk and host memory.
constexpr bool is_of_disk(stream_kind kind) {
  return kind == stream_kind::disk_read || kind == stream_kind::disk_write;
}

struct stream_entry {
  stream_kind kind = stream_kind::compute;
  const char *name = nullptr; ///< the name in timelines
};

/// The members of a communicator: the ranks of the position that differ from a rank in the coordinates of `axes` only.
/// A communicator with `positions` joins those of several positions, the ranks of the first of them first; its axes
/// then have the same sizes in all of them.
struct communicator_entry {
  span<std::int32_t> axes;
  std::int32_t stream = 0; ///< that its collectives run on, a place in the program's `streams`, of kind communicator
  bool exchanges = false;  ///< the program has all-to-alls or permutes on it
  span<std::int32_t> positions = {}; ///< that it joins, its own among them, ascending; empty for its own only
};

/// Another position that this one exchanges messages with: each rank with the rank of the same number there.
struct peer_entry {
  std::int32_t position = 0;
  std::int32_t stream = 0; ///< that its messages run on, of kind peer; several peers may share one
};

/// A tensor that passes between a chunk and one of another position: an activation, or on the way back its gradient.
/// Both ends list the tensors of a border in the same order. In slot s of the chunk it begins `s * slot_stride` bytes
/// after `at`.
struct message_entry {
  direction way = direction::send;
  std::int32_t chunk = 0;
  std::int32_t peer_chunk = 0;
  std::int32_t peer = 0; ///< its number among the program's peers
  element_type type = element_type::f32;
  span<std::int64_t> sizes; ///< the sizes of the whole tensor
  span<split> splits;
  place at;
  std::int64_t slot_stride = 0;
};

/// A chunk of the model: its functions, and its slots, each for the inputs, the stash and the borders of a micro-batch
/// in flight. `adds` is false in the first run of a function in a step, which overwrites the loss or gradients; the
/// others add to them.
struct chunk_entry {
  std::int32_t chunk = 0; ///< its number in the model
  std::int32_t slots = 1;
  status (*forward)(context &, bool adds, std::int64_t slot) = nullptr;
  /// Runs the backward pass, or the part of it that other chunks wait for; `is_last` marks the last one of the step.
  status (*backward)(context &, bool adds, std::int64_t slot, std::int64_t handed_slot, bool is_last) = nullptr;
  /// Runs the rest of the backward pass; null where `backward` runs all of it.
  status (*weight_gradient)(context &, bool adds, std::int64_t slot, std::int64_t handed_slot, bool is_last) = nullptr;
  status (*reduce)(context &) = nullptr;
  status (*update)(context &) = nullptr; ///< after all chunks of the position are reduced
  status (*init)(context &) = nullptr;   ///< runs once, after parameters are loaded; null where nothing is to do
  /// Runs the forward pass of a micro-batch that is in slot 0, for its loss only; null in programs without evaluation.
  status (*evaluate)(context &) = nullptr;
  std::int32_t handed_slots = 1; ///< the number of slots for what a backward hands to its weight gradient
};

enum class action_kind : std::int32_t {
  repeat,          ///< the next `length` actions, `count` times
  forward,         ///< runs a micro-batch's forward pass; its inputs are in place
  backward,        ///< runs a micro-batch's backward pass; the last one begins the reductions of complete gradients
  weight_gradient, ///< runs the rest of a backward pass in two parts, and begins reductions in its place
  send,            ///< sends a micro-batch's activation to the next chunk, or a gradient to the one before
  receive,
  reduce, ///< runs the rest of the reductions, and waits for all
  update,
  evaluate, ///< of an evaluation only
};

/// A row of a step. In turn t, from 0, of the repeat around it, the action works on the rank's micro-batch `micro_batch
/// + t * per_turn` of the step; all else is the same in each turn.
struct action {
  action_kind kind = action_kind::repeat;
  std::int32_t chunk = 0;
  std::int32_t peer_chunk = -1; ///< the chunk at the other end of a send or receive
  std::int32_t micro_batch = 0;
  std::int32_t per_turn = 0;
  std::int32_t slot = 0;        ///< the slot of the chunk that holds the micro-batch's inputs and stash
  std::int32_t handed_slot = 0; ///< the one for what its backward hands to its weight gradient
  bool is_first = false;        ///< the first of its kind and chunk in the step
  bool is_last = false;
  std::int32_t count = 0; ///< a repeat's turns
  std::int32_t length = 0;
};

/// The program that all ranks of a position run.
struct program {
  span<arena_entry> arenas;
  std::int64_t scratch_bytes = 0; ///< of the compute stream, for one thread; multiplied by the threads
  span<stream_entry> streams;     ///< one of kind compute, and one of kind communicator for each communicator
  std::int32_t events = 0;
  span<communicator_entry> communicators;
  span<peer_entry> peers;
  span<parameter_placement> parameters;
  span<state_entry> states;
  span<gradient_entry> gradients;
  span<input_placement> inputs;
  span<message_entry> messages;
  span<scalar_entry> scalars;
  place loss = no_place;      ///< f32: the step's mean loss after reduce; one position has it
  place grad_norm;            ///< f32: global norm of the step's gradient before clipping, after update
  place evaluated = no_place; ///< f32: loss of each merged micro-batch after an evaluation; where the loss is
  span<chunk_entry> chunks;
  span<action> actions;    ///< the actions of one step
  span<action> evaluation; ///< those that compute the loss of a micro-batch: evaluate, send and receive, in slot 0
  product_choices products;
  span<attention_choice> attentions;
};

/// A position: ranks `first_rank` to `first_rank + ranks - 1` of the job, which are the members of its mesh in
/// row-major order.
struct position_entry {
  span<axis> axes;
  std::int32_t first_rank = 0;
  std::int32_t ranks = 1; ///< the product of the axes' sizes
  const program *runs = nullptr;
};

/// The rates, in bytes per second, that copies keep to where processors emulate devices; 0: as fast as they are.
struct emulated_rates {
  std::int64_t link = 0; ///< between a device's memory and the host's, in each direction
  std::int64_t disk = 0; ///< of a device's reads and writes together
};

/// The tables that the ranks of a job train by. The axes of replicas have P members together, the same P in each
/// position.
struct job {
  std::int32_t version = 0;    ///< the version of these structures
  const char *model = nullptr; ///< name to print
  const char *plan_hash = nullptr;
  const char *precision = nullptr; ///< the type that values are computed in: f32, tf32, bf16 or f16
  optimizer kind = optimizer::adamw;
  bool clips = false;
  std::int32_t micro_batches = 1; ///< G
  std::int32_t merge = 1;         ///< K: a rank computes K micro-batches at once, G/(P*K) times in a step
  /// What a rank takes besides its arenas, as the user gave it; -1: what the back end declares.
  std::int64_t reserve_bytes = -1;
  emulated_rates emulated;
  span<parameter_entry> parameters;
  span<input_entry> inputs;
  counted_labels labels;
  span<position_entry> positions;
};

/// Returns the number of the position that rank `rank` of the job is in; -1 where it is in none.
std::int32_t position_of(const job &j, std::int32_t rank);
/// Returns whether the rows of two positions describe one communicator over positions.
bool is_same_spanning(const communicator_entry &a, const communicator_entry &b);
/// Returns the row of a chunk of a position's program; null where the position does not run the chunk.
const chunk_entry *find_chunk(const program &p, std::int32_t chunk);
/// Returns the number of ranks of all positions.
std::int32_t count_ranks(const job &j);

/// The version that this runtime reads.
constexpr std::int32_t job_version = 7;

/// Runs as the emitted program's `main`: reads flags, starts or joins the ranks, trains, returns the exit code.
int run_program(const job &j, int argc, char **argv);

} // namespace windlass::rt

#endif
