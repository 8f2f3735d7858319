// Which attentions the library computes, and which the own kernels.
#ifndef WINDLASS_BACKENDS_CUDA_ATTENTIONS_H
#define WINDLASS_BACKENDS_CUDA_ATTENTIONS_H

#include "attention_library.h"

#include "windlass/rt/detail/backend.h"

#include <functional>
#include <optional>
#include <vector>

namespace windlass::rt::cuda {

/// Runs attentions of one stream: by the own kernels, unless a profile or its own measurement says that the library is
/// faster. Used by one thread.
class attentions {
public:
  using opener = std::function<status(std::unique_ptr<attention_library> &)>;
  /// The library is opened when somebody asks for it.
  explicit attentions(opener open) : open_(std::move(open)) {}
  attentions(const attentions &) = delete;
  attentions &operator=(const attentions &) = delete;
  ~attentions();

  /// Makes ready what was chosen. What the library on this machine refuses, or needs more workspace for than was
  /// planned, stays with the own kernels. Says what came of it.
  std::string choose(const attention_choices &choices);
  std::string tune();
  /// `own` computes the same. The workspace is the stream's scratch.
  status run(stream &s, const attention_shape &shape, const attention_memory &memory,
             const std::function<status()> &own);

  /// Of the last that was run while tuning, if the library can compute it.
  std::optional<detail::tuned_attention> take_tuned();
  std::string library() const { return library_ == nullptr ? "" : library_->version(); }

private:
  struct entry {
    attention_shape shape;
    std::unique_ptr<prepared_attention> by; ///< null: the own kernels
    std::optional<detail::tuned_attention> times;
  };
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
