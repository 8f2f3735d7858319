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

/// The most pieces that a tensor may have.
constexpr std::int64_t max_pieces = 4096;
/// Returns the most boxes that a range of elements, in row-major order, of a tensor of rank `rank` is made of.
constexpr std::int64_t boxes_of_range(std::int64_t rank) { return rank > 0 ? 2 * rank - 1 : 1; }

/// A tensor and its pieces, which are disjoint and together cover it. A piece is a box in one file. There may be
/// millions of pieces in all, so these are numbers in two lists.
struct checkpoint_tensor {
  std::string name; ///< logical name; state is `<parameter>/<suffix>`
  bool is_state = false;
  element_type type = element_type::f32;
  std::vector<std::int64_t> sizes;
  std::vector<std::int32_t> files;   ///< for each piece: which of the manifest's files holds it
  std::vector<std::int64_t> extents; ///< for each piece: where it begins in each dimension, then its sizes

  std::int64_t pieces() const { return static_cast<std::int64_t>(files.size()); }
  void add_piece(std::int32_t file, const std::vector<std::int64_t> &begin, const std::vector<std::int64_t> &size);
  span<std::int64_t> begin_of(std::int64_t piece) const;
  span<std::int64_t> sizes_of(std::int64_t piece) const;
  /// Returns the piece's name in its file: the tensor's if the piece is all of it, else also where it begins:
  /// "w@[0, 3]".
  std::string key_of(std::int64_t piece) const;
};

struct checkpoint_file {
  std::string name;
  std::int64_t bytes = 0;
  std::string digest; ///< SHA-256, hexadecimal
};

struct checkpoint_manifest {
  std::int64_t step = 0;             ///< optimizer steps done
  std::int64_t next_micro_batch = 0; ///< the index k of the micro-batch that comes next in the data
  std::uint64_t seed = 0;
  bool shuffles = false;            ///< explicit batches are shuffled in each epoch
  std::int64_t skipped_updates = 0; ///< the steps among those done that the optimizer does not count
  std::optional<loss_scale> scale;  ///< for programs that scale their loss
  std::string model, plan_hash;
  std::string optimizer; ///< the one whose state it holds, as in `--optimizer`; empty in older checkpoints
  std::vector<checkpoint_file> files;
  std::vector<checkpoint_tensor> tensors; ///< sorted by name

  const checkpoint_tensor *find(std::string_view name) const;
};

/// Returns the name of a checkpoint's folder: "step-000020".
std::string checkpoint_name(std::int64_t step);
/// Returns the step of such a name, or -1.
std::int64_t parse_checkpoint_name(std::string_view name);

/// Gives a manifest's text to `put`, part by part.
status write_manifest(const checkpoint_manifest &manifest, const std::function<status(std::string_view)> &put);
/// Checks that a manifest of `bytes` bytes could be read again.
status check_manifest_bytes(std::int64_t bytes);
/// Reads and checks `folder`/manifest.json: file names without folders, pieces inside their tensors and covering them.
status read_manifest(const std::string &folder, checkpoint_manifest &out);
/// Compares the size and hash of every file, and every piece with the file that should hold it.
status verify_checkpoint(const std::string &folder, const checkpoint_manifest &manifest);

/// A checkpoint of a run's folder.
struct checkpoint_listing {
  std::string folder;
  std::int64_t step = 0;
};
/// Lists the checkpoints of the folder `run`, newest first, unverified; temporary and foreign names are left out.
status list_checkpoints(const std::string &run, std::vector<checkpoint_listing> &out);
/// Says how a run that has lost a rank goes on: from its last checkpoint, or anew where it has none.
std::string describe_way_on(const std::string &run);

/// Resolves `dir`, a checkpoint's folder or a run's, to a verified checkpoint: itself, or the newest valid one.
status find_checkpoint(const std::string &dir, std::string &folder, checkpoint_manifest &manifest);

struct tensor_part;

/// Finds where the pieces of a checkpoint begin in its files. The header of a file is read when the first of its pieces
/// is looked up, and no file stays open. Several threads may call `find`.
class checkpoint_index {
public:
  /// Opens the checkpoint in `folder`. `manifest` must outlive the index.
  status open(const std::string &folder, const checkpoint_manifest &manifest);
  const checkpoint_manifest &manifest() const { return *manifest_; }
  const folder &files() const { return folder_; }
  /// Finds the byte of its file at which a piece of one of the manifest's tensors begins.
  status find(const checkpoint_tensor &tensor, std::int64_t piece, std::int64_t &offset);
  /// Checks that every file holds the pieces that the manifest promises.
  status check();

private:
  status read_header(std::size_t file);
  folder folder_;
  const checkpoint_manifest *manifest_ = nullptr;
  std::vector<std::int64_t> first_;  ///< for each tensor: its first piece among all
  std::vector<std::int64_t> owners_; ///< all pieces, by file
  std::vector<std::int64_t> begins_; ///< for each file: its first among `owners_`, and the end
  std::vector<std::int64_t> offsets_;
  std::vector<bool> is_read_;
  std::mutex lock_;
};

/// Reads parts of tensors from whatever pieces hold them into dense memory. It holds one file open, the last one read.
class checkpoint_reader {
public:
  explicit checkpoint_reader(checkpoint_index &index) : index_(index) {}
  status read(const checkpoint_tensor &tensor, const tensor_part &wanted, std::byte *out);

private:
  checkpoint_index &index_;
  input_file file_;
  std::int32_t open_ = -1;
};

/// The tensors that an export has.
enum class exported {
  parameters, ///< parameters and buffers
  all,        ///< these, and the optimizer's state
  averages,   ///< parameters and buffers, but for each weight that has a moving average this one under its name
};

/// Merges a verified checkpoint into one safetensors file of whole tensors by logical name. `dir` is a checkpoint's
/// folder, or a run's, whose newest valid checkpoint is taken. Fails where averages are asked for and none is there.
status export_checkpoint(const std::string &dir, const std::string &out, exported what);

} // namespace windlass::rt

#endif
