#include "data.h"

#include "array_values.h"
#include "random.h"
#include "samples.h"

#include "windlass/rt/safetensors.h"
#include "windlass/rt/words.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace windlass::rt {

namespace {

/// Windows of T tokens from one or more streams; no window crosses the end of a stream.
class token_windows : public data_source {
public:
  static status open(const job &j, const data_settings &settings, std::vector<file_array> arrays,
                     std::unique_ptr<data_source> &out) {
    auto self = std::make_unique<token_windows>();
    self->inputs_ = data_inputs(j);
    self->shuffles_ = settings.shuffles_windows;
    self->epochs_ = settings.epochs;
    self->seed_ = settings.seed;
    std::int64_t ahead = 0;
    for (const input_entry &input : data_inputs(j)) {
      feed kind = input.default_feed;
      for (const auto &[name, given] : settings.inputs)
        if (name == input.name)
          kind = given;
      const std::string subject = "input " + quote_name(input);
      if (kind == feed::none)
        return bad_input(subject + " has no feed from token files; say tokens or next with --inputs, or give explicit "
                                   "batches in .safetensors")
            .as(diagnostic::data_feed);
      if (input.sizes.size != 2 || !is_integer(input.type))
        return bad_input(subject + " is " + safetensors_name(input.type) + sizes_text(sizes_of(input.sizes)) +
                         "; token files feed integers of [batch, tokens]")
            .as(diagnostic::data_feed);
      std::int64_t batch = input.sizes[0], tokens = input.sizes[1];
      if (self->feeds_.empty())
        self->batch_ = batch, self->tokens_ = tokens;
      if (batch != self->batch_ || tokens != self->tokens_)
        return bad_input(subject + " is " + sizes_text(sizes_of(input.sizes)) + ", but " + quote_name(j.inputs[0]) +
                         " is " + sizes_text({self->batch_, self->tokens_}) + "; token files feed inputs of one size")
            .as(diagnostic::data_feed);
      self->feeds_.push_back(kind);
      ahead = std::max<std::int64_t>(ahead, kind == feed::next);
    }
    if (self->feeds_.empty() || self->batch_ < 1 || self->tokens_ < 1)
      return bad_input("the model has no inputs that token files can feed").as(diagnostic::data_feed);
    std::int64_t total = 0;
    for (file_array &array : arrays) {
      if (!is_integer(array.type))
        return bad_input(quote(array.file->path()) + (array.name.empty() ? "" : ", " + quote(array.name)) + " is " +
                         safetensors_name(array.type) + ", not tokens");
      std::int64_t length = array.elements();
      total += length;
      std::int64_t windows = std::max<std::int64_t>(0, (length - ahead) / self->tokens_);
      self->buffer_.reserve(static_cast<std::size_t>(self->tokens_ * size_of(array.type)));
      self->streams_.push_back({std::move(array), self->windows_, windows});
      self->windows_ += windows;
    }
    if (self->windows_ < self->batch_)
      return bad_input(quote(self->streams_[0].array.file->path()) + " is too short: its " + count_of(total, "token") +
                       (total == 1 ? " gives " : " give ") + count_of(self->windows_, "window") + " of " +
                       std::to_string(self->tokens_) + ", one micro-batch takes " + std::to_string(self->batch_))
          .as(diagnostic::data_short);
    self->per_epoch_ = self->windows_ / self->batch_;
    out = std::move(self);
    return ok_status();
  }

  status read(std::size_t input, std::int64_t k, const tensor_part &local, std::byte *out) override {
    for (const local_box &each : local.boxes)
      WINDLASS_TRY(read_box(input, k, each, out));
    return ok_status();
  }

  status check(std::int64_t first, std::int64_t count) const override {
    if (!epochs_)
      return ok_status();
    std::string files;
    for (const stream_of_tokens &stream : streams_)
      files += (files.empty() ? "" : ", ") + quote(stream.array.file->path());
    return check_epochs(files, per_epoch_, *epochs_, first, count);
  }
  status check_values(std::int64_t bytes) override {
    std::vector<std::byte> buffer;
    for (const stream_of_tokens &stream : streams_) {
      const std::int64_t width = size_of(stream.array.type);
      const std::int64_t count = std::min(stream.windows * tokens_, bytes / width);
      for (std::size_t input = 0; input < feeds_.size(); ++input)
        WINDLASS_TRY(scan_ids(inputs_[static_cast<std::int64_t>(input)], stream.array, feeds_[input] == feed::next,
                              count, buffer));
      bytes -= count * width;
    }
    return ok_status();
  }
  std::int64_t micro_batches() const override { return per_epoch_; }
  std::string describe() const override {
    return count_of(windows_, "window") + " of " + count_of(tokens_, "token") + ", " +
           count_of(per_epoch_, "micro-batch", "micro-batches") + " an epoch";
  }

private:
  /// Reads one box of windows and tokens to its place in the part's memory.
  status read_box(std::size_t input, std::int64_t k, const local_box &local, std::byte *out) {
    const input_entry &entry = inputs_[static_cast<std::int64_t>(input)];
    const std::vector<std::int64_t> &begin = local.held.begin, &sizes = local.held.sizes;
    std::uint64_t epoch = static_cast<std::uint64_t>(k / per_epoch_);
    permutation order(static_cast<std::uint64_t>(windows_), seed_, epoch);
    for (std::int64_t row = begin[0]; row < begin[0] + sizes[0]; ++row) {
      std::uint64_t position = static_cast<std::uint64_t>(k % per_epoch_ * batch_ + row);
      std::int64_t window = static_cast<std::int64_t>(shuffles_ ? order(position) : position);
      const stream_of_tokens &from =
          *std::prev(std::upper_bound(streams_.begin(), streams_.end(), window,
                                      [](std::int64_t w, const stream_of_tokens &s) { return w < s.first_window; }));
      std::int64_t first = (window - from.first_window) * tokens_ + begin[1] + (feeds_[input] == feed::next);
      WINDLASS_TRY(read_array(from.array, first, sizes[1], buffer_));
      WINDLASS_TRY(check_ids(entry, from.array, from.array.type, buffer_.data(), sizes[1], first));
      std::int64_t at = (row - local.frame.begin[0]) * local.frame.sizes[1] + begin[1] - local.frame.begin[1];
      if (!convert_elements(from.array.type, buffer_.data(), entry.type, out + at * size_of(entry.type), sizes[1]))
        return bad_input(quote(from.array.file->path()) + " holds ids that do not fit the " +
                         safetensors_name(entry.type) + " input " + quote_name(entry))
            .as(diagnostic::data_value);
    }
    return ok_status();
  }

  struct stream_of_tokens {
    file_array array;
    std::int64_t first_window, windows;
  };
  span<input_entry> inputs_;
  std::vector<feed> feeds_;
  std::vector<stream_of_tokens> streams_;
  std::vector<std::byte> buffer_;
  std::int64_t batch_ = 0, tokens_ = 0, windows_ = 0, per_epoch_ = 0;
  std::optional<std::int64_t> epochs_;
  std::uint64_t seed_ = 0;
  bool shuffles_ = true;
};

/// Arrays named `<input>.<k>`. Micro-batch k is read from those, unless epochs or their order were asked for: then an
/// epoch is all of them, and k is position k mod n of epoch k / n.
class explicit_batches : public data_source {
public:
  static status open(const job &j, const data_settings &settings, std::vector<file_array> arrays,
                     std::unique_ptr<data_source> &out) {
    auto self = std::make_unique<explicit_batches>();
    self->epochs_ = settings.epochs;
    self->shuffles_ = settings.shuffles_batches;
    self->seed_ = settings.seed;
    self->inputs_ = data_inputs(j);
    self->batches_.resize(static_cast<std::size_t>(self->inputs_.size));
    for (const input_entry &input : self->inputs_)
      self->wholes_.push_back(whole_box(sizes_of(input.sizes)));
    std::int64_t most = 0;
    for (file_array &array : arrays) {
      if (self->files_.find(quote(array.file->path())) == std::string::npos)
        self->files_ += (self->files_.empty() ? "" : ", ") + quote(array.file->path());
      std::int64_t input = -1, k = -1;
      if (!find_input(self->inputs_, array.name, input, k))
        continue;
      const input_entry &tensor = j.inputs[input];
      const std::string path = array.file->path(), name = array.name;
      if (array.sizes != sizes_of(tensor.sizes) || !are_convertible(array.type, tensor.type))
        return bad_input(quote(path) + " holds " + quote(name) + " as " + safetensors_name(array.type) +
                         sizes_text(array.sizes) + ", but input " + quote_name(tensor) + " is " +
                         safetensors_name(tensor.type) + sizes_text(sizes_of(tensor.sizes)))
            .as(diagnostic::data_feed);
      most = std::max(most, array.elements() * size_of(array.type));
      if (!self->batches_[static_cast<std::size_t>(input)].emplace(k, std::move(array)).second)
        return bad_input(quote(path) + " holds " + quote(name) + ", which an earlier file holds too");
    }
    // Evaluation may read its first batch late in a run.
    self->buffer_.reserve(static_cast<std::size_t>(most));
    self->local_.reserve(static_cast<std::size_t>(most));
    for (std::int64_t k = 0;; ++k) {
      bool is_whole = true;
      for (const auto &table : self->batches_)
        is_whole &= table.count(k) != 0;
      if (!is_whole) {
        self->count_ = k;
        break;
      }
    }
    out = std::move(self);
    return ok_status();
  }

  status read(std::size_t input, std::int64_t k, const tensor_part &local, std::byte *out) override {
    const input_entry &entry = inputs_[static_cast<std::int64_t>(input)];
    auto found = batches_[input].find(batch_of(k));
    if (found == batches_[input].end())
      return missing(input, k);
    const file_array &array = found->second;
    WINDLASS_TRY(read_array(array, 0, array.elements(), buffer_));
    if (is_integer(array.type))
      WINDLASS_TRY(check_ids(entry, array, array.type, buffer_.data(), array.elements(), 0));
    local_.resize(static_cast<std::size_t>(local.elements() * size_of(array.type)));
    copy_overlap(wholes_[input], buffer_.data(), local, local_.data(), size_of(array.type));
    if (!convert_elements(array.type, local_.data(), entry.type, out, local.elements()))
      return bad_input(quote(array.file->path()) + " holds values in " + quote(array.name) + " that do not fit the " +
                       safetensors_name(entry.type) + " input")
          .as(diagnostic::data_value);
    return ok_status();
  }

  status check(std::int64_t first, std::int64_t count) const override {
    if (has_epochs()) {
      // An epoch is the batches before the first missing one, so none may follow it.
      bool has_gap = count_ == 0;
      for (const auto &table : batches_)
        has_gap |= !table.empty() && table.rbegin()->first >= count_;
      if (has_gap)
        return missing(first_missing(), count_);
      return check_epochs(files_, count_, epochs_.value_or(1), first, count);
    }
    for (std::int64_t k = first; k < first + count; ++k)
      for (std::size_t input = 0; input < batches_.size(); ++input)
        if (!batches_[input].count(k))
          return missing(input, k);
    return ok_status();
  }
  status check_values(std::int64_t bytes) override {
    for (std::size_t input = 0; input < batches_.size(); ++input)
      for (const auto &[k, array] : batches_[input]) {
        if (!is_integer(array.type) || bytes <= 0)
          continue;
        const std::int64_t count = std::min(array.elements(), bytes / size_of(array.type));
        WINDLASS_TRY(scan_ids(inputs_[static_cast<std::int64_t>(input)], array, 0, count, buffer_));
        bytes -= count * size_of(array.type);
      }
    return ok_status();
  }
  std::int64_t micro_batches() const override { return count_; }
  std::string describe() const override {
    return std::to_string(count_) + " explicit batches" +
           (has_epochs() ? std::string(", ") + (shuffles_ ? "shuffled" : "in order") + " in each epoch" : "");
  }

private:
  bool has_epochs() const { return epochs_ || shuffles_; }

  /// Returns the batch that is micro-batch `k`.
  std::int64_t batch_of(std::int64_t k) const {
    if (!has_epochs() || count_ < 1)
      return k;
    const auto position = static_cast<std::uint64_t>(k % count_), epoch = static_cast<std::uint64_t>(k / count_);
    const permutation order(static_cast<std::uint64_t>(count_), seed_, epoch);
    return static_cast<std::int64_t>(shuffles_ ? order(position) : position);
  }

  /// Returns the first input that lacks batch `count_`.
  std::size_t first_missing() const {
    std::size_t input = 0;
    while (input + 1 < batches_.size() && batches_[input].count(count_))
      ++input;
    return input;
  }

  status missing(std::size_t input, std::int64_t k) const {
    const char *name = inputs_[static_cast<std::int64_t>(input)].name;
    const std::string held = count_ == 0 ? "no whole micro-batch" : "micro-batches 0 to " + std::to_string(count_ - 1);
    return bad_input(files_ + " lacks " + quote(name + ("." + std::to_string(k))) + ": it holds " + held +
                     "; give more data, fewer --steps, or --epochs to take them several times");
  }

  static bool find_input(span<input_entry> inputs, const std::string &name, std::int64_t &input, std::int64_t &k) {
    std::size_t dot = name.rfind('.');
    if (dot == std::string::npos)
      return false;
    const char *first = name.data() + dot + 1, *last = name.data() + name.size();
    auto result = std::from_chars(first, last, k);
    if (first == last || result.ec != std::errc() || result.ptr != last || k < 0)
      return false;
    for (input = 0; input < inputs.size; ++input)
      if (name.compare(0, dot, inputs[input].name) == 0)
        return true;
    return false;
  }

  span<input_entry> inputs_;
  std::vector<std::map<std::int64_t, file_array>> batches_;
  std::string files_;       ///< for messages
  std::vector<box> wholes_; ///< of each input
  std::vector<std::byte> buffer_, local_;
  std::int64_t count_ = 0; ///< whole micro-batches from 0 on
  std::optional<std::int64_t> epochs_;
  bool shuffles_ = false;
  std::uint64_t seed_ = 0;
};

/// `<input>.<k>` for an input of the model: the file holds explicit batches.
bool is_explicit(const job &j, const file_array &array) {
  for (const input_entry &input : data_inputs(j)) {
    std::string prefix = std::string(input.name) + ".";
    if (array.name.compare(0, prefix.size(), prefix) == 0)
      return true;
  }
  return false;
}

} // namespace

span<input_entry> data_inputs(const job &j) {
  std::int64_t count = j.inputs.size;
  while (count > 0 && j.inputs[count - 1].default_feed == feed::random)
    --count;
  return {j.inputs.data, count};
}

void write_dropout_keys(const input_entry &input, std::uint64_t seed, std::int64_t k, const tensor_part &local,
                        std::byte *out) {
  std::int64_t *keys = reinterpret_cast<std::int64_t *>(out);
  for (const local_box &each : local.boxes) {
    const box &held = each.held, &frame = each.frame;
    for (std::int64_t row = held.begin[0]; row < held.begin[0] + held.sizes[0]; ++row)
      for (std::int64_t mask = held.begin[1]; mask < held.begin[1] + held.sizes[1]; ++mask)
        keys[(row - frame.begin[0]) * frame.sizes[1] + mask - frame.begin[1]] =
            dropout_key(seed, static_cast<std::uint64_t>(k * input.sizes[0] + row), static_cast<std::uint64_t>(mask));
  }
}

status open_data(const job &j, const data_settings &settings, std::unique_ptr<data_source> &out) {
  auto check_input = [&](const char *flag, const std::string &name) {
    const span<input_entry> known = data_inputs(j);
    if (std::any_of(known.begin(), known.end(), [&](const input_entry &input) { return name == input.name; }))
      return ok_status();
    return bad_input(std::string(flag) + " names " + quote(name) + ", which is no input of the model")
        .as(diagnostic::data_feed);
  };
  for (const auto &[name, kind] : settings.inputs)
    WINDLASS_TRY(check_input("--inputs", name));
  for (const normalization &given : settings.normalize)
    WINDLASS_TRY(check_input("--normalize", given.input));
  std::vector<file_array> arrays;
  std::size_t named = 0, explicit_count = 0, sample_count = 0;
  for (const std::string &path : settings.files)
    WINDLASS_TRY(open_arrays(path, settings.bytes, arrays));
  for (const file_array &array : arrays) {
    named += !array.name.empty();
    explicit_count += is_explicit(j, array);
    sample_count += holds_samples(j, array);
  }
  const bool is_mixed = (explicit_count > 0 || sample_count > 0) && named < arrays.size();
  if (is_mixed || (explicit_count > 0 && sample_count > 0))
    return bad_input("the data mix " + std::string(explicit_count > 0 ? "explicit batches" : "samples") + " and " +
                     (is_mixed ? "token files" : "samples") + "; give one kind")
        .as(diagnostic::data_feed);
  if (sample_count > 0)
    return open_samples(j, settings, std::move(arrays), out);
  if (!settings.normalize.empty())
    return bad_input("--normalize is of samples, but " + quote(settings.files[0]) + " holds " +
                     (explicit_count > 0 ? "explicit batches" : "tokens"))
        .as(diagnostic::data_feed);
  if (explicit_count > 0)
    return explicit_batches::open(j, settings, std::move(arrays), out);
  bool is_safetensors = !arrays.empty() && settings.files[0].size() > 12 &&
                        settings.files[0].compare(settings.files[0].size() - 12, 12, ".safetensors") == 0;
  if (arrays.empty() || is_safetensors)
    return bad_input(quote(settings.files[0]) + " holds neither batches of the model's inputs, such as " +
                     quote(data_inputs(j).size ? std::string(j.inputs[0].name) + ".0" : "input.0") +
                     ", nor samples, such as " + quote(data_inputs(j).size ? j.inputs[0].name : "input"))
        .as(diagnostic::data_feed);
  return token_windows::open(j, settings, std::move(arrays), out);
}

} // namespace windlass::rt
