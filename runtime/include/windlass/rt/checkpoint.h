// Checkpoints on disk: a folder `step-000020` of safetensors files and a manifest that names every tensor, its whole
// shape, the boxes it is stored in, and the hash of every file. Nothing here needs a running program.
#ifndef WINDLASS_RT_CHECKPOINT_H
#define WINDLASS_RT_CHECKPOINT_H

#include "windlass/rt/loss_scale.h"
#include "windlass/rt/safetensors.h"
#include "windlass/rt/span.h"
#include "windlass/rt/status.h"
#include "windlass/rt/view.h"

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace windlass::rt {

/// Pieces that a tensor may have.
constexpr std::int64_t max_pieces = 4096;
/// The most boxes that a range of a tensor's elements, in row-major order, is made of.
constexpr std::int64_t boxes_of_range(std::int64_t rank) { return rank > 0 ? 2 * rank - 1 : 1; }

/// A tensor and its pieces, which are disjoint and together the whole of it. A piece is a box in one file. There may be
/// millions of pieces in all, so these are numbers in two lists.
struct checkpoint_tensor {
  std::string name; ///< logical name; state is `<parameter>/<suffix>`
  bool is_state = false;
  element_type type = element_type::f32;
  std::vector<std::int64_t> sizes;
  std::vector<std::int32_t> files;   ///< of each piece: which of the manifest's files holds it
  std::vector<std::int64_t> extents; ///< of each piece: where it begins in each dimension, then its sizes

  std::int64_t pieces() const { return static_cast<std::int64_t>(files.size()); }
  void add_piece(std::int32_t file, const std::vector<std::int64_t> &begin, const std::vector<std::int64_t> &size);
  span<std::int64_t> begin_of(std::int64_t piece) const;
  span<std::int64_t> sizes_of(std::int64_t piece) const;
  /// The piece's name in its file: the tensor's if it is all of it, else with where it begins: "w@[0, 3]".
  std::string key_of(std::int64_t piece) const;
};

struct checkpoint_file {
  std::string name;
  std::int64_t bytes = 0;
  std::string digest; ///< SHA-256, hexadecimal
};

struct checkpoint_manifest {
  std::int64_t step = 0;             ///< optimizer steps done
  std::int64_t next_micro_batch = 0; ///< k that comes next in the data
  std::uint64_t seed = 0;
  bool shuffles = false;            ///< explicit batches, in each epoch
  std::int64_t skipped_updates = 0; ///< steps of those done that the optimizer does not count
  std::optional<loss_scale> scale;  ///< of programs that scale their loss
  std::string model, plan_hash;
  std::vector<checkpoint_file> files;
  std::vector<checkpoint_tensor> tensors; ///< sorted by name

  const checkpoint_tensor *find(std::string_view name) const;
};

/// The name of a checkpoint's folder: "step-000020".
std::string checkpoint_name(std::int64_t step);
/// The step of such a name, or -1.
std::int64_t parse_checkpoint_name(std::string_view name);

/// Gives a manifest's text to `put`, part by part.
status write_manifest(const checkpoint_manifest &manifest, const std::function<status(std::string_view)> &put);
/// Checks that a manifest of so many bytes could be read again.
status check_manifest_bytes(std::int64_t bytes);
/// Reads and checks `folder`/manifest.json: file names without folders, pieces inside their tensors and covering them.
status read_manifest(const std::string &folder, checkpoint_manifest &out);
/// Compares size and hash of every file, and every piece with the file that should hold it.
status verify_checkpoint(const std::string &folder, const checkpoint_manifest &manifest);

/// The checkpoints of a run's folder, newest first, unverified; temporary and foreign names are left out.
struct checkpoint_listing {
  std::string folder;
  std::int64_t step = 0;
};
status list_checkpoints(const std::string &run, std::vector<checkpoint_listing> &out);

/// Resolves `dir`, a checkpoint's folder or a run's, to a verified checkpoint: itself, or the newest valid one.
status find_checkpoint(const std::string &dir, std::string &folder, checkpoint_manifest &manifest);

struct tensor_part;

/// Where the pieces of a checkpoint lie in its files. The header of a file is read when the first of its pieces is
/// looked for, and no file stays open. Several threads may ask.
class checkpoint_index {
public:
  /// `manifest` is to outlive it.
  status open(const std::string &folder, const checkpoint_manifest &manifest);
  const checkpoint_manifest &manifest() const { return *manifest_; }
  const folder &files() const { return folder_; }
  /// The byte of its file at which a piece of one of the manifest's tensors begins.
  status find(const checkpoint_tensor &tensor, std::int64_t piece, std::int64_t &offset);
  /// Checks that every file holds the pieces that the manifest promises.
  status check();

private:
  status read_header(std::size_t file);
  folder folder_;
  const checkpoint_manifest *manifest_ = nullptr;
  std::vector<std::int64_t> first_;  ///< of each tensor: its first piece among all
  std::vector<std::int64_t> owners_; ///< all pieces, by file
  std::vector<std::int64_t> begins_; ///< of each file: its first among `owners_`, and the end
  std::vector<std::int64_t> offsets_;
  std::vector<bool> is_read_;
  std::mutex lock_;
};

/// Reads parts of tensors from whatever pieces hold them into dense memory. It holds one file open, the last.
class checkpoint_reader {
public:
  explicit checkpoint_reader(checkpoint_index &index) : index_(index) {}
  status read(const checkpoint_tensor &tensor, const tensor_part &wanted, std::byte *out);

private:
  checkpoint_index &index_;
  input_file file_;
  std::int32_t open_ = -1;
};

/// Merges a verified checkpoint into one safetensors file of whole tensors by logical name: parameters and buffers,
/// with `with_state` the optimizer's state too. `dir` is a checkpoint's folder, or a run's, whose newest valid one is
/// taken.
status export_checkpoint(const std::string &dir, const std::string &out, bool with_state);

} // namespace windlass::rt

#endif
