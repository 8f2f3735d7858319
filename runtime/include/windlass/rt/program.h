// What an emitted program tells the runtime about itself: tables and step functions. Everything here is constant data.
#ifndef WINDLASS_RT_PROGRAM_H
#define WINDLASS_RT_PROGRAM_H

#include "windlass/rt/attention_shape.h"
#include "windlass/rt/products.h"
#include "windlass/rt/span.h"
#include "windlass/rt/status.h"
#include "windlass/rt/view.h"

namespace windlass::rt {

class context;

/// What the members of an axis share out: any work of operators, the micro-batches of a step, the graph's batch,
/// experts.
enum class axis_role : std::int32_t { model, replica, batch, expert };

/// A mesh axis; a rank's coordinate on it follows from row-major order of the axes. Those of replicas carry P groups of
/// ranks together, numbered in the same order.
struct axis {
  const char *name;
  std::int32_t size;
  axis_role role = axis_role::model;
};

/// How a dimension is cut over an axis: its whole extent D is `blocks` equal blocks, each cut into as many equal parts
/// as the axis has members, n. A rank with coordinate c holds the c-th part of each block: index i is its own if (i /
/// (D / (blocks * n))) % n == c for every split of the dimension. `blocks` is 1 for an outermost cut; it is the size of
/// everything major to the cut, such as 3 for the heads of a fused weight of [768, 3 * heads * 64].
///
/// Splits whose dim is `flat_dim` cut what those of dims leave: as one dim, in row-major order, filled with zeros to a
/// multiple of their axes' members. `blocks` is the members of the outer ones of them.
struct split {
  std::int32_t dim;
  std::int32_t axis;
  std::int64_t blocks;
};

constexpr std::int32_t flat_dim = -1;

/// A tensor of the device arena. `sizes` are of the whole tensor; the local part follows from `splits` and is dense,
/// its indices in their order.
struct tensor_entry {
  const char *name; ///< logical name: the ONNX initializer's or input's
  element_type type;
  span<std::int64_t> sizes;
  span<split> splits;
  std::int64_t offset; ///< bytes into the device arena
};

enum class source_kind : std::int32_t { none, packed, external };

/// Where the initial bytes of a parameter come from.
struct source {
  source_kind kind;    ///< packed: `params.safetensors` beside the program, by name; external: below `--weights`
  const char *file;    ///< external: relative path
  std::int64_t offset; ///< external: bytes
  std::int64_t length;
  element_type type; ///< external: of the bytes; a packed file says it itself
};

/// How `--init random` fills a parameter.
enum class initializer : std::int32_t { zeros, ones, normal };

/// A parameter as the step reads it, and its master copy, to which the optimizer and checkpoints refer: f32, unless
/// both are one buffer, which has one offset and the same splits.
struct parameter_entry {
  tensor_entry tensor;
  span<split> master_splits;
  std::int64_t master_offset;
  source bytes;
  initializer random;
  bool is_trainable; ///< false: a buffer or a frozen weight
  bool decays;
};

/// Optimizer state of `parameter` (index into parameters), cut as its master, stored as `<parameter>/<suffix>`; zero at
/// the start.
struct state_entry {
  const char *suffix; ///< exp_avg, exp_avg_sq, momentum_buffer
  std::int32_t parameter;
  std::int64_t offset;
};

/// The reduced gradient of `parameter`, of the mean of the G losses, before clipping; valid between reduce and update.
struct gradient_entry {
  std::int32_t parameter;
  span<split> splits;
  std::int64_t offset;
};

/// How an input finds its values in a token file when `--inputs` does not say. An input fed `random` is none of the
/// model's, but the keys of its dropouts, i64 [batch, dropouts], which the program makes; it comes last.
enum class feed : std::int32_t { none, tokens, next, random };

struct input_entry {
  tensor_entry tensor; ///< of one micro-batch
  feed default_feed;
  std::int64_t vocabulary; ///< ids must be below it; 0: unknown
};

/// The labels that the loss of a step is the mean of, over all its micro-batches: the elements of a box of an input
/// that are not `ignored`. Without sizes, the loss is the mean of the micro-batches' losses.
struct counted_labels {
  std::int32_t input;
  std::int64_t ignored;
  span<std::int64_t> starts, sizes;
};

/// Runtime scalars, f32, written into the device arena before the functions that read them.
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
  loss_scale, ///< a program that has it computes gradients of the loss times it
  inverse_loss_scale,
  inverse_label_count ///< 1 over the labels of the step: see `counted_labels`
};
struct scalar_entry {
  scalar kind;
  std::int64_t offset;
};

enum class optimizer : std::int32_t { adamw, sgd };

/// What runs on a stream: the kernels of the step, or the collectives of one communicator.
enum class stream_kind : std::int32_t { compute, communicator };

struct stream_entry {
  stream_kind kind;
  const char *name; ///< in timelines
};

/// The members of a communicator: the ranks that differ from a rank in the coordinates of `axes` only.
struct communicator_entry {
  span<std::int32_t> axes;
  std::int32_t stream;    ///< that its collectives run on, a place in the program's `streams`, of kind communicator
  bool exchanges = false; ///< the program has all-to-alls or permutes on it
};

enum class action_kind : std::int32_t {
  repeat,   ///< the next `length` actions, `count` times
  forward,  ///< of a micro-batch; its inputs are in place
  backward, ///< of a micro-batch; the last one begins the reductions of gradients that are complete
  reduce,   ///< the rest of the reductions, and the wait for all
  update,
};

/// A row of a step. In turn t of the repeat around it, from 0, an action is of micro-batch `micro_batch + t * per_turn`
/// of the rank's in the step; all else is the same in each turn.
struct action {
  action_kind kind;
  std::int32_t chunk;
  std::int32_t micro_batch;
  std::int32_t per_turn;
  std::int32_t slot; ///< of the chunk, that holds the micro-batch's inputs and stash
  bool is_first;     ///< of its kind and chunk in the step
  bool is_last;
  std::int32_t count; ///< of a repeat
  std::int32_t length;
};

struct program {
  std::int32_t version; ///< of this structure
  const char *model;    ///< name to print
  const char *plan_hash;
  span<axis> axes;
  std::int32_t micro_batches; ///< G
  optimizer kind;
  bool clips;
  const char *precision;      ///< that values are computed in: f32, tf32, bf16 or f16
  std::int64_t device_bytes;  ///< device arena
  std::int64_t pinned_bytes;  ///< pinned host arena
  std::int64_t scratch_bytes; ///< of the compute stream for one thread, times threads
  span<stream_entry> streams; ///< one of kind compute, and one of kind communicator for each communicator
  std::int32_t events;
  span<communicator_entry> communicators;
  span<parameter_entry> parameters;
  span<state_entry> states;
  span<gradient_entry> gradients;
  span<input_entry> inputs;
  counted_labels labels;
  span<scalar_entry> scalars;
  std::int64_t loss_offset;      ///< f32: the step's mean loss after reduce
  std::int64_t grad_norm_offset; ///< f32: global norm of the step's gradient before clipping, after update
  std::int64_t evaluate_offset;  ///< f32: loss of the micro-batch after evaluate
  span<action> actions;          ///< of one step
  product_choices products;
  attention_choices attentions;
  status (*init)(context &); ///< once, after parameters are loaded
  /// `index` counts the rank's micro-batches of the step from 0; gradients are overwritten at 0 and added to after.
  status (*forward)(context &, std::int64_t index);
  /// `is_last`: of the step.
  status (*backward)(context &, std::int64_t index, bool is_last);
  status (*reduce)(context &);
  status (*update)(context &);
  status (*evaluate)(context &);
};

/// The emitted program's `main`: reads flags, starts or joins the ranks, trains, returns the exit code.
int run_program(const program &p, int argc, char **argv);

} // namespace windlass::rt

#endif
