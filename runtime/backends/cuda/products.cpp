#include "products.h"

#include "epilogues.h"
#include "stream.h"
#include "turns.h"

#include <algorithm>

namespace windlass::rt {
namespace cuda {

namespace {

/// The number of candidates for a shape.
constexpr std::size_t most_candidates = 16;
/// The most of the first guess's time that another algorithm may take to be chosen: a smaller gain is noise.
constexpr double worth = 0.98;

/// The largest power of two that divides all addresses, up to what arenas give to every buffer.
int alignment_of(const column_gemm &call) {
  std::uintptr_t all = 64;
  for (const std::byte *memory : {call.x.data, call.y.data, call.d.data, call.vector, call.input, call.added})
    all |= reinterpret_cast<std::uintptr_t>(memory);
  return static_cast<int>(all & (~all + 1));
}

std::string type_name(element_type type) {
  return type == element_type::bf16 ? "bf16" : type == element_type::f16 ? "f16" : "f32";
}

const char *epilogue_name(epilogue also) {
  switch (also) {
  case epilogue::none:
    break;
  case epilogue::bias:
    return " bias";
  case epilogue::bias_gelu:
    return " bias gelu";
  case epilogue::bias_gelu_input:
    return " bias gelu input";
  case epilogue::gelu_grad:
    return " gelu grad";
  case epilogue::sum_x:
    return " sum-x";
  case epilogue::sum_y:
    return " sum-y";
  }
  return "";
}

} // namespace

products::shape products::shape_of(const column_gemm &call) {
  return {static_cast<std::int64_t>(call.x.type),
          static_cast<std::int64_t>(call.d.type),
          call.x.is_transposed,
          call.y.is_transposed,
          call.m,
          call.n,
          call.k,
          call.batch,
          call.x.leading,
          call.y.leading,
          call.d.leading,
          call.x.batch_stride,
          call.y.batch_stride,
          call.d.batch_stride,
          call.beta != 0,
          call.rounds_to_tf32,
          static_cast<std::int64_t>(call.also),
          alignment_of(call)};
}

std::string products::name_of(const column_gemm &call, int alignment) {
  const auto three = [](std::int64_t a, std::int64_t b, std::int64_t c, char between) {
    return std::to_string(a) + between + std::to_string(b) + between + std::to_string(c);
  };
  std::string name = type_name(call.x.type) + (call.x.is_transposed ? " T" : " N") +
                     (call.y.is_transposed ? "T " : "N ") + type_name(call.d.type) + " " +
                     three(call.m, call.n, call.k, 'x') + " leading " +
                     three(call.x.leading, call.y.leading, call.d.leading, ',');
  if (call.batch > 1)
    name += " batch " + std::to_string(call.batch) + " apart " +
            three(call.x.batch_stride, call.y.batch_stride, call.d.batch_stride, ',');
  return name + (call.beta != 0 ? " adds" : "") + (call.rounds_to_tf32 ? " tf32" : "") + epilogue_name(call.also) +
         " aligned " + std::to_string(alignment);
}

status products::run(stream &s, const column_gemm &call, std::byte *workspace, std::int64_t workspace_bytes) {
  prepared_gemm *by = nullptr;
  WINDLASS_TRY(find(s, call, workspace, workspace_bytes, by));
  return by->run(s, call, workspace, workspace_bytes);
}

status products::prepare(stream &s, const column_gemm &call, std::byte *workspace, std::int64_t workspace_bytes) {
  prepared_gemm *by = nullptr;
  return find(s, call, workspace, workspace_bytes, by);
}

status products::find(stream &s, const column_gemm &call, std::byte *workspace, std::int64_t workspace_bytes,
                      prepared_gemm *&out) {
  const shape key = shape_of(call);
  if (const auto found = prepared_.find(key); found != prepared_.end()) {
    out = found->second.get();
    return {};
  }
  const int alignment = alignment_of(call);
  std::unique_ptr<prepared_gemm> made;
  WINDLASS_TRY(library_->prepare(call, alignment, workspace_bytes, made));
  const std::string name = name_of(call, alignment);
  for (const product_choice &choice : choices_)
    if (name == choice.product && made->use(choice.algorithm))
      ++chosen_;
  if (tunes_)
    WINDLASS_TRY(find_fastest(s, call, name, workspace, workspace_bytes, *made));
  out = made.get();
  prepared_[key] = std::move(made);
  return {};
}

/// One that is added to gets its sums again and again.
status products::find_fastest(stream &s, const column_gemm &call, const std::string &name, std::byte *workspace,
                              std::int64_t workspace_bytes, prepared_gemm &of) {
  std::vector<product_algorithm> guesses;
  WINDLASS_TRY(of.guess(most_candidates, guesses));
  guesses.erase(std::remove_if(guesses.begin(), guesses.end(), [&](const product_algorithm &a) { return !of.use(a); }),
                guesses.end());
  // The library's own first guess, and behind it those that can be had again by their numbers.
  std::vector<double> seconds;
  const auto run = [&](std::size_t way) {
    if (way == 0)
      of.use_first();
    else
      of.use(guesses[way - 1]);
    return of.run(s, call, workspace, workspace_bytes);
  };
  WINDLASS_TRY(time_in_turns(s, guesses.size() + 1, run, seconds));
  of.use_first();
  const double first = seconds[0];
  std::size_t best = 0;
  double least = worth * first;
  for (std::size_t i = 1; i < seconds.size(); ++i)
    if (seconds[i] < least) {
      best = i;
      least = seconds[i];
    }
  if (best == 0) // the library knows best, in this version and in later ones
    return {};
  of.use(guesses[best - 1]);
  tuned_.push_back({name, guesses[best - 1], least, first});
  return {};
}

} // namespace cuda

std::string detail::choose_products(stream &s, const product_choices &choices) {
  cuda::products &own = cuda::device_stream_of(s).gemms();
  const std::string here = own.library() + " on " + device_name();
  const std::string there = std::string(choices.library) + " on " + choices.device;
  if (here != there)
    return "products: the profile's algorithms are those of " + there + ", this is " + here + ", which chooses itself";
  own.choose(choices.choices);
  return "products: " + std::to_string(choices.choices.size) + " algorithms of the profile, of " + here;
}

std::string detail::describe_products(stream &s) {
  const cuda::products &own = cuda::device_stream_of(s).gemms();
  const std::size_t fused = cuda::device_stream_of(s).epilogues().fused();
  return "products: " + std::to_string(own.chosen()) + " of " + std::to_string(own.shapes()) +
         " shapes by the profile's algorithms" + (fused > 0 ? ", " + std::to_string(fused) + " with epilogues" : "");
}

void detail::tune_products(stream &s) {
  cuda::device_stream_of(s).gemms().tune();
  cuda::device_stream_of(s).epilogues().tune();
}

const std::vector<detail::tuned_product> &detail::tuned_products(stream &s) {
  return cuda::device_stream_of(s).gemms().tuned();
}

std::string detail::product_library(stream &s) { return cuda::device_stream_of(s).gemms().library(); }

} // namespace windlass::rt
