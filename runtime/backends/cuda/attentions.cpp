#include "attentions.h"

#include "stream.h"
#include "turns.h"

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

} // namespace

attentions::~attentions() {
  if (workspace_ != nullptr)
    detail::free_memory(memory_kind::device, workspace_);
}

std::string attentions::choose(const attention_choices &choices) {
  const std::string own = "attention: own kernels";
  if (const status opened = open_(library_); !opened.is_ok())
    return own + ", as " + opened.message();
  const std::string here = library() + " on " + detail::device_name();
  const std::string there = std::string(choices.library) + " on " + choices.device;
  if (here != there)
    return own + ", as the profile's choices are those of " + there + ", this is " + here;
  std::string refused;
  std::int64_t taken = 0;
  for (const attention_choice &choice : choices.choices) {
    entry made = {choice.shape, nullptr, {}};
    status result = library_->prepare(choice.shape, made.by);
    if (result.is_ok() && made.by->workspace_bytes() > choice.workspace_bytes)
      result = bad_input("it needs " + std::to_string(made.by->workspace_bytes()) + " bytes of workspace, " +
                         std::to_string(choice.workspace_bytes) + " are planned");
    if (result.is_ok()) {
      entries_.push_back(std::move(made));
      ++taken;
    } else {
      refused += "; own kernels for " + name_of(choice.shape) + ", as " + result.message();
    }
  }
  return "attention: " + std::to_string(taken) + " of " + std::to_string(choices.choices.size) +
         " shapes of the profile by " + here + refused;
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

std::string detail::choose_attentions(stream &s, const attention_choices &choices) {
  return cuda::device_stream_of(s).attentions().choose(choices);
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
