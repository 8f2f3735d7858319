#include "samples.h"

#include "array_values.h"
#include "random.h"

#include "windlass/rt/safetensors.h"
#include "windlass/rt/words.h"

#include <algorithm>

namespace windlass::rt {

namespace {

bool is_floating(element_type type) {
  return type == element_type::f32 || type == element_type::f64 || type == element_type::bf16 ||
         type == element_type::f16;
}

/// How samples of an input become its elements.
struct conversion {
  std::int64_t elements = 1;            ///< of a sample
  std::int64_t channels = 1;            ///< the first dim of a sample
  std::int64_t pixels = 1;              ///< the product of its others
  std::vector<float> means, deviations; ///< of each channel; empty: values are taken as they are
};

/// One array of samples, beside those of other inputs.
struct sample_array {
  file_array array;
  bool has_channels_last = false;
};

/// The samples of a file.
struct shard {
  const input_file *file = nullptr;
  std::vector<sample_array> of_input;
  std::int64_t first = 0, count = 0;
};

class samples : public data_source {
public:
  status open(const job &j, const data_settings &settings, std::vector<file_array> arrays) {
    inputs_ = data_inputs(j);
    epochs_ = settings.epochs;
    seed_ = settings.seed;
    shuffles_ = settings.shuffles_windows;
    for (const input_entry &input : inputs_) {
      if (conversions_.empty() && input.sizes.size > 0)
        batch_ = input.sizes[0];
      if (input.sizes.size == 0 || input.sizes[0] != batch_ || batch_ < 1)
        return bad_input("input " + quote_name(input) + " is " + sizes_text(sizes_of(input.sizes)) +
                         ", not samples of which a batch has " + std::to_string(batch_) + "; give explicit batches")
            .as(diagnostic::data_feed);
      WINDLASS_TRY(add_conversion(input, settings));
    }
    for (file_array &array : arrays)
      WINDLASS_TRY(add(std::move(array)));
    for (shard &each : shards_) {
      WINDLASS_TRY(check_shard(each));
      each.first = count_;
      count_ += each.count;
    }
    per_epoch_ = count_ / batch_;
    if (per_epoch_ < 1)
      return bad_input(files_ + " has " + count_of(count_, "sample") + ", one micro-batch takes " +
                       std::to_string(batch_))
          .as(diagnostic::data_short);
    return ok_status();
  }

  status read(std::size_t input, std::int64_t k, const tensor_part &local, std::byte *out) override {
    const permutation order(static_cast<std::uint64_t>(count_), seed_, static_cast<std::uint64_t>(k / per_epoch_));
    const input_entry &entry = inputs_[static_cast<std::int64_t>(input)];
    box row = whole_box(sizes_of(entry.sizes));
    row.sizes[0] = 1;
    for (const local_box &each : local.boxes)
      for (std::int64_t at = each.held.begin[0]; at < each.held.begin[0] + each.held.sizes[0]; ++at) {
        const auto position = static_cast<std::uint64_t>(k % per_epoch_ * batch_ + at);
        WINDLASS_TRY(read_sample(input, static_cast<std::int64_t>(shuffles_ ? order(position) : position)));
        row.begin[0] = at;
        for_each_run(row, each, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
          const std::int64_t width = size_of(entry.type);
          std::copy_n(sample_.data() + from * width, count * width, out + to * width);
        });
      }
    return ok_status();
  }

  status check(std::int64_t first, std::int64_t count) const override {
    return epochs_ ? check_epochs(files_, per_epoch_, *epochs_, first, count) : ok_status();
  }

  status check_values(std::int64_t bytes) override {
    for (const shard &each : shards_)
      for (std::size_t input = 0; input < each.of_input.size(); ++input) {
        const file_array &array = each.of_input[input].array;
        const input_entry &entry = inputs_[static_cast<std::int64_t>(input)];
        if (!is_integer(entry.type) || bytes <= 0)
          continue;
        const std::int64_t count = std::min(array.elements(), bytes / size_of(array.type));
        WINDLASS_TRY(scan_ids(entry, array, 0, count, buffer_));
        bytes -= count * size_of(array.type);
      }
    return ok_status();
  }

  std::int64_t micro_batches() const override { return per_epoch_; }

  std::string describe() const override {
    std::string text =
        count_of(count_, "sample") + ", " + count_of(per_epoch_, "micro-batch", "micro-batches") + " an epoch";
    for (std::size_t input = 0; input < conversions_.size(); ++input) {
      const sample_array &first = shards_[0].of_input[input];
      const input_entry &entry = inputs_[static_cast<std::int64_t>(input)];
      if (first.array.type == element_type::u8 && is_floating(entry.type))
        text += ", " + quote_name(entry) + " in fractions of 255";
      if (first.has_channels_last)
        text += ", " + quote_name(entry) + " with its channels moved first";
    }
    return text;
  }

private:
  status add_conversion(const input_entry &input, const data_settings &settings) {
    conversion its;
    for (std::int64_t dim = 1; dim < input.sizes.size; ++dim)
      (dim == 1 ? its.channels : its.pixels) *= input.sizes[dim];
    its.elements = its.channels * its.pixels;
    for (const normalization &given : settings.normalize) {
      if (given.input != input.name)
        continue;
      const auto means = static_cast<std::int64_t>(given.means.size());
      if (!is_floating(input.type))
        return bad_input("--normalize names " + quote_name(input) + ", whose elements are " +
                         safetensors_name(input.type) + "; only floats are normalized")
            .as(diagnostic::data_feed);
      if (means != 1 && means != its.channels)
        return bad_input("--normalize gives " + count_of(means, "mean") + " for " + quote_name(input) + ", which has " +
                         count_of(its.channels, "channel"))
            .as(diagnostic::data_feed);
      its.means = given.means;
      its.deviations = given.deviations;
      its.means.resize(static_cast<std::size_t>(its.channels), given.means[0]);
      its.deviations.resize(static_cast<std::size_t>(its.channels), given.deviations[0]);
    }
    conversions_.push_back(std::move(its));
    return ok_status();
  }

  /// Adds an array to the shard of its file; arrays that are of no input are left out.
  status add(file_array array) {
    std::size_t input = 0;
    while (static_cast<std::int64_t>(input) < inputs_.size &&
           array.name != inputs_[static_cast<std::int64_t>(input)].name)
      ++input;
    if (static_cast<std::int64_t>(input) == inputs_.size)
      return ok_status();
    const std::string path = array.file->path();
    if (shards_.empty() || shards_.back().file != array.file.get()) {
      shards_.push_back({array.file.get(), std::vector<sample_array>(static_cast<std::size_t>(inputs_.size))});
      files_ += (files_.empty() ? "" : ", ") + quote(path);
    }
    const input_entry &entry = inputs_[static_cast<std::int64_t>(input)];
    std::vector<std::int64_t> wanted = sizes_of(entry.sizes), last = wanted;
    if (!array.sizes.empty())
      wanted[0] = last[0] = array.sizes[0];
    if (is_floating(entry.type) && last.size() > 3)
      std::rotate(last.begin() + 1, last.begin() + 2, last.end());
    const bool is_scaled = array.type == element_type::u8 && is_floating(entry.type);
    if ((array.sizes != wanted && array.sizes != last) || (!is_scaled && !are_convertible(array.type, entry.type)))
      return bad_input(quote(path) + " holds " + quote(array.name) + " as " + safetensors_name(array.type) +
                       sizes_text(array.sizes) + ", but samples of the input are " + safetensors_name(entry.type) +
                       sizes_text({wanted.begin() + 1, wanted.end()}))
          .as(diagnostic::data_feed);
    sample_array &place = shards_.back().of_input[input];
    if (place.array.file)
      return bad_input(quote(path) + " holds " + quote(array.name) + " twice");
    buffer_.reserve(static_cast<std::size_t>(conversions_[input].elements * size_of(array.type)));
    sample_.reserve(static_cast<std::size_t>(conversions_[input].elements * size_of(entry.type)));
    for (std::vector<float> *values : {&raw_, &values_})
      values->reserve(static_cast<std::size_t>(conversions_[input].elements));
    place.has_channels_last = array.sizes != wanted;
    place.array = std::move(array);
    return ok_status();
  }

  /// Checks that a file has samples of all inputs, as many of each.
  status check_shard(shard &each) const {
    const sample_array &given = *std::find_if(each.of_input.begin(), each.of_input.end(),
                                              [](const auto &s) { return s.array.file != nullptr; });
    for (std::size_t input = 0; input < each.of_input.size(); ++input) {
      const file_array &array = each.of_input[input].array;
      const std::string path = quote(given.array.file->path());
      if (!array.file)
        return bad_input(path + " holds samples of " + quote(given.array.name) + ", but none of input " +
                         quote_name(inputs_[static_cast<std::int64_t>(input)]))
            .as(diagnostic::data_feed);
      if (array.sizes[0] != given.array.sizes[0])
        return bad_input(path + " holds " + count_of(given.array.sizes[0], "sample") + " of " +
                         quote(given.array.name) + ", but " + std::to_string(array.sizes[0]) + " of " +
                         quote(array.name))
            .as(diagnostic::data_feed);
    }
    each.count = given.array.sizes[0];
    return ok_status();
  }

  /// Reads a sample of an input into `sample_`, as elements of the input's type in their order.
  status read_sample(std::size_t input, std::int64_t number) {
    const shard &from = *std::prev(std::upper_bound(shards_.begin(), shards_.end(), number,
                                                    [](std::int64_t n, const shard &s) { return n < s.first; }));
    const sample_array &source = from.of_input[input];
    const conversion &how = conversions_[input];
    const input_entry &entry = inputs_[static_cast<std::int64_t>(input)];
    const file_array &array = source.array;
    const std::int64_t first = (number - from.first) * how.elements;
    WINDLASS_TRY(read_array(array, first, how.elements, buffer_));
    if (is_integer(array.type) && is_integer(entry.type))
      WINDLASS_TRY(check_ids(entry, array, array.type, buffer_.data(), how.elements, first));
    sample_.resize(static_cast<std::size_t>(how.elements * size_of(entry.type)));
    if (!is_floating(entry.type) || (array.type == entry.type && how.means.empty() && !source.has_channels_last))
      return convert(array, array.type, buffer_.data(), entry, how.elements);
    make_values(array.type, how, source.has_channels_last);
    return convert(array, element_type::f32, reinterpret_cast<const std::byte *>(values_.data()), entry, how.elements);
  }

  status convert(const file_array &array, element_type type, const std::byte *in, const input_entry &entry,
                 std::int64_t count) {
    if (convert_elements(type, in, entry.type, sample_.data(), count))
      return ok_status();
    return bad_input(quote(array.file->path()) + " holds values in " + quote(array.name) + " that do not fit the " +
                     safetensors_name(entry.type) + " input")
        .as(diagnostic::data_value);
  }

  /// Makes numbers of the sample in `buffer_`, its channels first: bytes as torchvision's ToTensor does, then
  /// (value - mean) / deviation.
  void make_values(element_type type, const conversion &how, bool has_channels_last) {
    values_.resize(static_cast<std::size_t>(how.elements));
    raw_.resize(static_cast<std::size_t>(how.elements));
    if (type == element_type::u8)
      for (std::size_t i = 0; i < raw_.size(); ++i)
        raw_[i] = static_cast<float>(static_cast<std::uint8_t>(buffer_[i])) / 255.0F;
    else
      convert_elements(type, buffer_.data(), element_type::f32, reinterpret_cast<std::byte *>(raw_.data()),
                       how.elements);
    for (std::int64_t channel = 0; channel < how.channels; ++channel)
      for (std::int64_t pixel = 0; pixel < how.pixels; ++pixel) {
        const std::int64_t at = channel * how.pixels + pixel,
                           from = has_channels_last ? pixel * how.channels + channel : at;
        const float value = raw_[static_cast<std::size_t>(from)];
        const auto c = static_cast<std::size_t>(channel);
        values_[static_cast<std::size_t>(at)] = how.means.empty() ? value : (value - how.means[c]) / how.deviations[c];
      }
  }

  span<input_entry> inputs_;
  std::vector<conversion> conversions_; ///< of each input
  std::vector<shard> shards_;
  std::string files_; ///< for messages
  std::vector<std::byte> buffer_, sample_;
  std::vector<float> raw_, values_;
  std::int64_t batch_ = 1, count_ = 0, per_epoch_ = 0;
  std::optional<std::int64_t> epochs_;
  std::uint64_t seed_ = 0;
  bool shuffles_ = true;
};

} // namespace

bool holds_samples(const job &j, const file_array &array) {
  for (const input_entry &input : data_inputs(j))
    if (array.name == input.name && array.sizes.size() == static_cast<std::size_t>(input.sizes.size))
      return true;
  return false;
}

status open_samples(const job &j, const data_settings &settings, std::vector<file_array> arrays,
                    std::unique_ptr<data_source> &out) {
  auto source = std::make_unique<samples>();
  WINDLASS_TRY(source->open(j, settings, std::move(arrays)));
  out = std::move(source);
  return ok_status();
}

} // namespace windlass::rt
