#include "async_save.h"

#include <cstring>
#include <exception>
#include <string>

namespace windlass::rt {

async_save::~async_save() {
  if (thread_.joinable())
    thread_.join();
}

status async_save::open(std::int32_t threads) {
  tensors_ = written_tensors(j_);
  WINDLASS_TRY(list_own_files(context_.rank(), tensors_, files_));
  const std::int64_t bytes = files_[0].bytes() + files_[1].bytes();
  if (!copy_.allocate(bytes, "copy", memory_kind::pinned, threads).is_ok())
    return bad_input("cannot allocate the " + std::to_string(bytes) +
                     " bytes of the copy that --async-save keeps; leave it out, or use more ranks")
        .as(diagnostic::allocation);
  return ok_status();
}

status async_save::copy_pieces() {
  piece_reader pieces(context_);
  std::byte *to = copy_.at(0);
  for (const own_file &file : files_)
    for (std::size_t i = 0; i < file.entries.size(); ++i) {
      const std::byte *bytes = nullptr;
      WINDLASS_TRY(pieces.read(file.pieces[i], file.entries[i].bytes, bytes));
      std::memcpy(to, bytes, static_cast<std::size_t>(file.entries[i].bytes));
      to += file.entries[i].bytes;
    }
  return ok_status();
}

void async_save::write() {
  try {
    const std::byte *from = copy_.at(0);
    written_ = write_files(
        run_, at_.step, files_,
        [&](std::size_t kind, std::size_t i, const std::byte *&bytes) {
          bytes = from;
          from += files_[kind].entries[i].bytes;
          return ok_status();
        },
        results_);
  } catch (const std::exception &error) {
    written_ = internal_error(error.what());
  }
  is_written_.store(true, std::memory_order_release);
}

status async_save::start(const save_point &at) {
  WINDLASS_TRY(begin_save(ranks_, run_, at.step));
  at_ = at;
  is_running_ = true;
  is_written_ = false;
  results_ = {};
  written_ = copy_pieces();
  if (written_.is_ok()) {
    try {
      thread_ = std::thread([this] { write(); });
      return ok_status();
    } catch (const std::exception &error) {
      written_ = internal_error(std::string("cannot start a thread that saves: ") + error.what());
    }
  }
  is_written_ = true; // nothing: `finish` tells all ranks
  return ok_status();
}

status async_save::finish() {
  if (thread_.joinable())
    thread_.join();
  is_running_ = false;
  return end_save(j_, ranks_, run_, tensors_, at_, written_, results_);
}

} // namespace windlass::rt
