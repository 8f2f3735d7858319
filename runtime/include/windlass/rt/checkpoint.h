// Checkpoints on disk: a folder `step-000020` of safetensors files and a manifest that names every tensor, its whole
// shape, the boxes it is stored in, and the hash of every file. Nothing here needs a running program.
#ifndef WINDLASS_RT_CHECKPOINT_H
#define WINDLASS_RT_CHECKPOINT_H

#include "windlass/rt/loss_scale.h"
#include "windlass/rt/safetensors.h"
#include "windlass/rt/status.h"
#include "windlass/rt/view.h"

#include <optional>
#include <string>
#include <vector>

namespace windlass::rt {

/// Pieces that a tensor may have.
constexpr std::int64_t max_pieces = 4096;
/// The most boxes that a range of a tensor's elements, in row-major order, is made of.
constexpr std::int64_t boxes_of_range(std::int64_t rank) { return rank > 0 ? 2 * rank - 1 : 1; }

/// A part of a tensor in one file. A piece that is the whole tensor has the tensor's name as its key.
struct checkpoint_piece {
  std::string file, key;
  std::vector<std::int64_t> begin, sizes;
};

struct checkpoint_tensor {
  std::string name; ///< logical name; state is `<parameter>/<suffix>`
  bool is_state = false;
  element_type type = element_type::f32;
  std::vector<std::int64_t> sizes;
  std::vector<checkpoint_piece> pieces; ///< disjoint; together the whole tensor
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

std::string manifest_text(const checkpoint_manifest &manifest);
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

/// Reads a part of a tensor from whatever pieces hold it into dense memory.
class checkpoint_reader {
public:
  status open(const std::string &folder, const checkpoint_manifest &manifest);
  status read(const checkpoint_tensor &tensor, const tensor_part &wanted, std::byte *out) const;

private:
  std::vector<std::pair<std::string, safetensors_file>> files_;
};

/// Merges a verified checkpoint into one safetensors file of whole tensors by logical name: parameters and buffers,
/// with `with_state` the optimizer's state too. `dir` is a checkpoint's folder, or a run's, whose newest valid one is
/// taken.
status export_checkpoint(const std::string &dir, const std::string &out, bool with_state);

} // namespace windlass::rt

#endif
