// A save in its parts: a dotted folder is made, each rank writes its files, rank 0 adds the manifest and gives the
// folder its name.
#ifndef WINDLASS_RT_SRC_PROGRAM_SAVE_PARTS_H
#define WINDLASS_RT_SRC_PROGRAM_SAVE_PARTS_H

#include "windlass/rt/checkpoint.h"
#include "windlass/rt/context.h"
#include "windlass/rt/folder.h"
#include "windlass/rt/host_copy.h"
#include "windlass/rt/program.h"
#include "windlass/rt/safetensors.h"

#include "control.h"
#include "rank_state.h"
#include "schedule.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace windlass::rt {

/// What a checkpoint says beside its tensors.
struct save_point {
  std::int64_t step = 0, next_micro_batch = 0;
  std::uint64_t seed = 0;
  bool shuffles = false; ///< explicit batches
  update_history past;
};

/// A piece that a rank writes: where it begins in the rank's memory of a tensor.
struct own_piece {
  const stored_tensor *tensor = nullptr;
  local_box where;
};

/// A file of a checkpoint as one rank writes it.
struct own_file {
  std::string name;
  std::vector<safetensors_entry> entries; ///< in the order of the file; none: the rank has no such file
  std::vector<own_piece> pieces;          ///< of each entry

  /// Returns the bytes of all its pieces.
  std::int64_t bytes() const { return entries.empty() ? 0 : entries.back().offset + entries.back().bytes; }
};

/// A rank's file of parameters and its file of state.
using own_files = std::array<own_file, 2>;

/// Lists what `rank` writes of `tensors`, which must outlive it. Fails where a file's header would be too long to read.
status list_own_files(std::int32_t rank, const std::vector<stored_tensor> &tensors, own_files &out);

/// Brings pieces from a rank's memory to the host, one at a time.
class piece_reader {
public:
  explicit piece_reader(context &c) : context_(c) {}
  /// Points `out` at the piece's `bytes` bytes, which are valid until the next call.
  status read(const own_piece &piece, std::int64_t bytes, const std::byte *&out);

private:
  context &context_;
  std::optional<host_copy> held_;
  std::vector<std::byte> buffer_;
};

/// The size and hash of a file that a rank has written.
struct written_file {
  std::int64_t bytes = 0; ///< 0: the rank has no such file
  std::array<char, 64> digest = {};
};
using written_files = std::array<written_file, 2>;

/// Gives the bytes of piece `i` of file `kind` (0 parameters, 1 state); called in order.
using piece_bytes = std::function<status(std::size_t kind, std::size_t i, const std::byte *&bytes)>;

/// Makes the manifest of a save, the same on every rank but for the files' bytes and hashes, which are still to come.
checkpoint_manifest plan_manifest(const job &j, const std::vector<stored_tensor> &tensors, const save_point &at);

/// Makes the dotted folder of a save. Collective, as end_save is; every rank gets the same status.
status begin_save(control &ranks, const std::string &run, std::int64_t step);

/// Writes a rank's files into the folder. It communicates with nobody, so any thread may do it.
status write_files(const std::string &run, std::int64_t step, const own_files &files, const piece_bytes &bytes_of,
                   written_files &out);

/// Writes the manifest and gives the folder its name, or removes it where a rank could not write; `mine` and `files`
/// say what became of this rank's files.
status end_save(const job &j, control &ranks, const std::string &run, const std::vector<stored_tensor> &tensors,
                const save_point &at, const status &mine, const written_files &files);

/// The names of a checkpoint's folder while it is filled or removed, and of one that is replaced.
std::string partial_name(std::int64_t step);
std::string old_name(std::int64_t step);

/// Opens RUN/checkpoints.
status open_checkpoints(const std::string &run, folder &out);

} // namespace windlass::rt

#endif
