#include "attentions.h"

#include "stream.h"
#include "turns.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace windlass::rt {
namespace cuda {

namespace {

/// The most of our own kernels' time that the library may take to be chosen: a smaller gain is noise.
constexpr double worth = 0.98;

bool is_aligned(const attention_memory &memory) {
  std::uintptr_t all = reinterpret_cast<std::uintptr_t>(memory.lse);
  for (const std::byte *operand : memory.operands)
    all |= reinterpret_cast<std::uintptr_t>(operand);
  return all % 16 == 0;
}

/// Returns the bytes from the first element of an operand to its last, of the operand with most.
std::int64_t largest_operand_bytes(const attention_shape &shape) {
  std::int64_t largest = shape.batch * shape.heads * shape.queries * size_of(element_type::f32);
  for (int operand = 0; operand < attention_shape::operands; ++operand) {
    const std::array<std::int64_t, 4> sizes = sizes_of(shape, operand);
    std::int64_t last = sizes[3] - 1;
    for (int d = 0; d < 3; ++d)
      last += (sizes[static_cast<std::size_t>(d)] - 1) * shape.strides[operand][d];
    largest = std::max(largest, (last + 1) * size_of(shape.type));
  }
  return largest;
}

} // namespace

attentions::~attentions() {
  if (workspace_ != nullptr)
    detail::free_memory(memory_kind::device, workspace_);
}

std::string attentions::choose(stream &s, span<attention_choice> choices, std::byte *memory, std::int64_t bytes) {
  if (const status opened = open_(library_); !opened.is_ok())
    return "attention: own kernels, as " + opened.message();
  std::string refused;
  std::int64_t taken = 0;
  for (const attention_choice &choice : choices) {
    entry made = {choice.shape, nullptr, {}};
    if (const status prepared = prepare(s, choice, memory, bytes, made); prepared.is_ok()) {
      entries_.push_back(std::move(made));
      ++taken;
    } else {
      refused += "; own kernels for " + name_of(choice.shape) + ", as " + prepared.message();
    }
  }
  return "attention: " + std::to_string(taken) + " of " + std::to_string(choices.size) + " shapes by " + library() +
         " on " + detail::device_name() + refused;
}

status attentions::prepare(stream &s, const attention_choice &choice, std::byte *memory, std::int64_t bytes,
                           entry &made) {
  WINDLASS_TRY(library_->prepare(choice.shape, made.by));
  if (const std::int64_t needed = made.by->workspace_bytes(); needed > choice.workspace_bytes)
    return bad_input("it needs " + std::to_string(needed) + " bytes of workspace, " +
                     std::to_string(choice.workspace_bytes) + " are planned");
  if (largest_operand_bytes(choice.shape) > bytes)
    return internal_error("there is no room to try it");
  attention_memory all;
  std::fill(std::begin(all.operands), std::end(all.operands), memory);
  all.lse = memory;
  WINDLASS_TRY(made.by->run(all, s.scratch()));
  return s.synchronize();
}

std::string attentions::tune() {
  const status opened = open_(library_);
  tunes_ = opened.is_ok();
  return tunes_ ? "attention: " + library() + " is measured beside the own kernels"
                : "attention: own kernels only, as " + opened.message();
}

attentions::entry *attentions::find(const attention_shape &shape) {
  for (entry &each : entries_)
    if (each.shape == shape)
      return &each;
  return nullptr;
}

status attentions::run(stream &s, const attention_shape &shape, const attention_memory &memory,
                       const std::function<status()> &own) {
  entry *found = is_aligned(memory) ? find(shape) : nullptr;
  if (found == nullptr && tunes_ && is_aligned(memory)) {
    entry made = {shape, nullptr, {}};
    WINDLASS_TRY(tune(s, memory, own, made));
    found = &entries_.emplace_back(std::move(made));
  }
  last_ = found == nullptr ? std::nullopt : found->times;
  if (found == nullptr || found->by == nullptr)
    return own();
  return found->by->run(memory, tunes_ ? workspace_ : s.scratch());
}

status attentions::tune(stream &s, const attention_memory &memory, const std::function<status()> &own, entry &of) {
  std::unique_ptr<prepared_attention> by;
  if (!library_->prepare(of.shape, by).is_ok() || !reserve(by->workspace_bytes()).is_ok())
    return {};
  std::vector<double> medians;
  WINDLASS_TRY(
      time_in_turns(s, 2, [&](std::size_t way) { return way == 0 ? own() : by->run(memory, workspace_); }, medians));
  if (medians[1] == failed_seconds)
    return {};
  of.times = {medians[1], medians[0], by->workspace_bytes()};
  if (medians[1] < worth * medians[0])
    of.by = std::move(by);
  return {};
}

status attentions::reserve(std::int64_t bytes) {
  if (bytes <= workspace_bytes_)
    return {};
  std::byte *larger = nullptr;
  WINDLASS_TRY(detail::allocate_memory(memory_kind::device, bytes, "measured workspace", larger));
  if (workspace_ != nullptr)
    detail::free_memory(memory_kind::device, workspace_);
  workspace_ = larger;
  workspace_bytes_ = bytes;
  return {};
}

std::optional<detail::tuned_attention> attentions::take_tuned() { return std::exchange(last_, std::nullopt); }

} // namespace cuda

std::string detail::choose_attentions(stream &s, span<attention_choice> choices, std::byte *memory,
                                      std::int64_t bytes) {
  return cuda::device_stream_of(s).attentions().choose(s, choices, memory, bytes);
}

std::string detail::tune_attentions(stream &s) { return cuda::device_stream_of(s).attentions().tune(); }

bool detail::take_tuned_attention(stream &s, tuned_attention &out) {
  const std::optional<tuned_attention> taken = cuda::device_stream_of(s).attentions().take_tuned();
  if (taken)
    out = *taken;
  return taken.has_value();
}

std::string detail::attention_library_name(stream &s) { return cuda::device_stream_of(s).attentions().library(); }

} // namespace windlass::rt
