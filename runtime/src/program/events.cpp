// TensorBoard's event files, written by hand: tfrecord framing around four fields of the Event message.
#include "metrics.h"

#include "windlass/rt/hash.h"

#include <chrono>
#include <cmath>
#include <cstring>

namespace windlass::rt {

namespace {

void put_varint(std::string &out, std::uint64_t value) {
  for (; value >= 128; value >>= 7)
    out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

template <class T> void put_little(std::string &out, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    out += static_cast<char>(value >> (8 * i) & 255);
}

template <class To, class From> To bits_of(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To out;
  std::memcpy(&out, &value, sizeof out);
  return out;
}

// Protobuf tags: field number * 8 + wire type (0 varint, 1 eight bytes, 2 with a length, 5 four bytes).
void put_text(std::string &out, int field, std::string_view text) {
  put_varint(out, static_cast<std::uint64_t>(field) * 8 + 2);
  put_varint(out, text.size());
  out += text;
}

void put_head(std::string &out, std::int64_t step) {
  double wall = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  put_varint(out, 1 * 8 + 1); // wall_time
  put_little(out, bits_of<std::uint64_t>(wall));
  put_varint(out, 2 * 8 + 0); // step
  put_varint(out, static_cast<std::uint64_t>(step));
}

std::uint32_t masked_crc(const char *text, std::size_t bytes) {
  std::uint32_t crc = crc32c(text, bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

} // namespace

status event_file::open(const std::string &run, std::int64_t first_step) {
  std::int64_t wall =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  folder in;
  WINDLASS_TRY(in.open(run));
  WINDLASS_TRY(file_.create(in, "events.out.tfevents." + std::to_string(wall / 1000000) + "." +
                                    std::to_string(wall % 1000000) + ".windlass"));
  for (std::string *each : {&event_, &summary_, &value_, &frame_})
    each->reserve(512);
  put_head(event_, 0);
  put_text(event_, 3, "brain.Event:2"); // file_version
  WINDLASS_TRY(record());
  put_head(event_, first_step);
  put_varint(value_, 1 * 8 + 0); // SessionLog.status = START
  put_varint(value_, 1);
  put_text(event_, 7, value_);
  return record();
}

status event_file::add(std::int64_t step, std::initializer_list<named_value> values) {
  summary_.clear();
  for (const auto &[name, number] : values) {
    value_.clear();
    put_text(value_, 1, name);
    put_varint(value_, 2 * 8 + 5); // simple_value
    put_little(value_, bits_of<std::uint32_t>(number));
    put_text(summary_, 1, value_);
  }
  put_head(event_, step);
  put_text(event_, 5, summary_);
  return record();
}

/// Writes the event and clears it.
status event_file::record() {
  frame_.clear();
  put_little(frame_, static_cast<std::uint64_t>(event_.size()));
  put_little(frame_, masked_crc(frame_.data(), frame_.size()));
  frame_ += event_;
  put_little(frame_, masked_crc(event_.data(), event_.size()));
  event_.clear();
  return file_.write(frame_);
}

} // namespace windlass::rt
