// The choice between the library's attentions and our own kernels.
#ifndef WINDLASS_BACKENDS_CUDA_ATTENTIONS_H
#define WINDLASS_BACKENDS_CUDA_ATTENTIONS_H

#include "attention_library.h"

#include "windlass/rt/detail/backend.h"

#include <functional>
#include <optional>
#include <vector>

namespace windlass::rt::cuda {

/// Runs attentions of one stream. The library computes those that were chosen, or that a measurement found it to be
/// faster at; our own kernels compute the others. Used by one thread.
class attentions {
public:
  using opener = std::function<status(std::unique_ptr<attention_library> &)>;
  /// Takes a function that opens the library when it is first needed.
  explicit attentions(opener open) : open_(std::move(open)) {}
  attentions(const attentions &) = delete;
  attentions &operator=(const attentions &) = delete;
  ~attentions();

  /// Prepares the chosen attentions and runs each once, with all operands at the beginning of `bytes` bytes of
  /// memory, whose contents are lost. Those that the library on this machine refuses, or needs more workspace for than
  /// was planned, stay with our own kernels. Returns a text that says what came of it.
  std::string choose(stream &s, span<attention_choice> choices, std::byte *memory, std::int64_t bytes);
  std::string tune();
  /// Computes an attention; `own` computes the same by our own kernels. The workspace is the stream's scratch.
  status run(stream &s, const attention_shape &shape, const attention_memory &memory,
             const std::function<status()> &own);

  /// Takes the times of the last attention run while tuning, if the library can compute it.
  std::optional<detail::tuned_attention> take_tuned();
  std::string library() const { return library_ == nullptr ? "" : library_->version(); }

private:
  struct entry {
    attention_shape shape;
    std::unique_ptr<prepared_attention> by; ///< null: our own kernels
    std::optional<detail::tuned_attention> times;
  };
  status prepare(stream &s, const attention_choice &choice, std::byte *memory, std::int64_t bytes, entry &made);
  entry *find(const attention_shape &shape);
  status tune(stream &s, const attention_memory &memory, const std::function<status()> &own, entry &of);
  status reserve(std::int64_t bytes);

  opener open_;
  std::unique_ptr<attention_library> library_;
  std::vector<entry> entries_; ///< a handful
  bool tunes_ = false;
  std::byte *workspace_ = nullptr; ///< while tuning, when nothing is planned yet
  std::int64_t workspace_bytes_ = 0;
  std::optional<detail::tuned_attention> last_;
};

} // namespace windlass::rt::cuda

#endif
