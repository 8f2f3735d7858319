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
void put_text(std::string &out, int field, const std::string &text) {
  put_varint(out, static_cast<std::uint64_t>(field) * 8 + 2);
  put_varint(out, text.size());
  out += text;
}

std::string event_head(std::int64_t step) {
  double wall = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::string out;
  put_varint(out, 1 * 8 + 1); // wall_time
  put_little(out, bits_of<std::uint64_t>(wall));
  put_varint(out, 2 * 8 + 0); // step
  put_varint(out, static_cast<std::uint64_t>(step));
  return out;
}

std::uint32_t masked_crc(const std::string &text) {
  std::uint32_t crc = crc32c(text.data(), text.size());
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

} // namespace

status event_file::open(const std::string &run, std::int64_t first_step) {
  std::int64_t wall =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  WINDLASS_TRY(file_.create(join_path(run, "events.out.tfevents." + std::to_string(wall / 1000000) + "." +
                                               std::to_string(wall % 1000000) + ".windlass")));
  std::string head = event_head(0);
  put_text(head, 3, "brain.Event:2"); // file_version
  WINDLASS_TRY(record(head));
  std::string start = event_head(first_step), log;
  put_varint(log, 1 * 8 + 0); // SessionLog.status = START
  put_varint(log, 1);
  put_text(start, 7, log);
  return record(start);
}

status event_file::add(std::int64_t step, const std::vector<std::pair<const char *, float>> &values) {
  std::string summary;
  for (const auto &[tag, number] : values) {
    std::string value;
    put_text(value, 1, tag);
    put_varint(value, 2 * 8 + 5); // simple_value
    put_little(value, bits_of<std::uint32_t>(number));
    put_text(summary, 1, value);
  }
  std::string event = event_head(step);
  put_text(event, 5, summary);
  return record(event);
}

status event_file::record(const std::string &event) {
  std::string length, out;
  put_little(length, static_cast<std::uint64_t>(event.size()));
  out = length;
  put_little(out, masked_crc(length));
  out += event;
  put_little(out, masked_crc(event));
  return file_.write(out);
}

} // namespace windlass::rt
