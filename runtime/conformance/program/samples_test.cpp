// Data sets of samples: order, shards, images as bytes, normalization, and files that are wrong.
#include "data.h"

#include "temporary_folder.h"
#include "test_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

using namespace windlass::rt;
using namespace windlass::rt::test;
using testing::HasSubstr;

namespace {

constexpr std::int64_t batch = 2, channels = 3, height = 1, width = 2, image = channels * height * width;
const std::int64_t pixel_sizes[] = {batch, channels, height, width}, label_sizes[] = {batch};
const input_entry inputs[] = {{"pixels", element_type::f32, {pixel_sizes, 4}, feed::none, 0},
                              {"labels", element_type::i64, {label_sizes, 1}, feed::none, 10}};

job image_job() {
  job j = bigram_program(1);
  j.inputs = {inputs, 2};
  return j;
}

struct array {
  std::string name, type, shape, bytes;
};

std::string file_of(const std::vector<array> &arrays) {
  std::string entries, data;
  for (const array &each : arrays) {
    entries += (entries.empty() ? "" : ",") + ("\"" + each.name) + "\":{\"dtype\":\"" + each.type +
               "\",\"shape\":" + each.shape + ",\"data_offsets\":[" + std::to_string(data.size()) + "," +
               std::to_string(data.size() + each.bytes.size()) + "]}";
    data += each.bytes;
  }
  return safetensors_bytes("{" + entries + "}", data);
}

/// Samples `first`, .., of which sample n has the label n and the pixels 10 n, 10 n + 1, .., as floats or as bytes.
std::vector<array> counted(std::int64_t first, std::int64_t count, bool is_bytes = false,
                           bool has_channels_last = false) {
  std::vector<float> pixels;
  std::vector<std::int64_t> labels;
  for (std::int64_t n = first; n < first + count; ++n) {
    for (std::int64_t i = 0; i < image; ++i) {
      const std::int64_t from = has_channels_last ? i % channels * width + i / channels : i;
      pixels.push_back(static_cast<float>(10 * n + from));
    }
    labels.push_back(n);
  }
  const std::string number = std::to_string(count);
  std::string bytes = bytes_of(pixels);
  if (is_bytes)
    bytes = bytes_of(std::vector<std::uint8_t>(pixels.begin(), pixels.end()));
  return {{"pixels", is_bytes ? "U8" : "F32", "[" + number + (has_channels_last ? ",1,2,3]" : ",3,1,2]"), bytes},
          {"labels", "I64", "[" + number + "]", bytes_of(labels)}};
}

status open(std::vector<std::string> files, std::unique_ptr<data_source> &out, bool shuffles = false,
            std::vector<normalization> normalize = {}, std::optional<std::int64_t> epochs = {}) {
  static const job j = image_job();
  data_settings settings;
  settings.files = std::move(files);
  settings.shuffles_windows = shuffles;
  settings.normalize = std::move(normalize);
  settings.epochs = epochs;
  return open_data(j, settings, out);
}

std::vector<float> pixels_of(data_source &data, std::int64_t k) {
  std::vector<float> out(batch * image);
  status s =
      data.read(0, k, part_of(whole_box({batch, channels, height, width})), reinterpret_cast<std::byte *>(out.data()));
  EXPECT_TRUE(s.is_ok()) << s.message();
  return out;
}

std::vector<std::int64_t> labels_of(data_source &data, std::int64_t k) {
  std::vector<std::int64_t> out(batch);
  status s = data.read(1, k, part_of(whole_box({batch})), reinterpret_cast<std::byte *>(out.data()));
  EXPECT_TRUE(s.is_ok()) << s.message();
  return out;
}

} // namespace

TEST(Samples, ShardsAreOneSet) {
  temporary_folder folder;
  std::unique_ptr<data_source> data;
  std::vector<array> first = counted(0, 3);
  first.push_back({"names", "U8", "[1]", "x"});
  status s = open(
      {folder.write("a.safetensors", file_of(first)), folder.write("b.safetensors", file_of(counted(3, 4)))}, data);
  ASSERT_TRUE(s.is_ok()) << s.message();
  EXPECT_EQ(data->micro_batches(), 3);
  EXPECT_EQ(data->describe(), "7 samples, 3 micro-batches an epoch");
  for (std::int64_t k = 0; k < 6; ++k) {
    const std::int64_t n = k % 3 * batch;
    EXPECT_EQ(labels_of(*data, k), (std::vector<std::int64_t>{n, n + 1}));
    std::vector<float> expected;
    for (std::int64_t each : {n, n + 1})
      for (std::int64_t i = 0; i < image; ++i)
        expected.push_back(static_cast<float>(10 * each + i));
    EXPECT_EQ(pixels_of(*data, k), expected);
  }
}

TEST(Samples, EachEpochTakesEachOnceInAnotherOrder) {
  temporary_folder folder;
  std::unique_ptr<data_source> data;
  ASSERT_TRUE(open({folder.write("a.safetensors", file_of(counted(0, 8)))}, data, true, {}, 3).is_ok());
  std::vector<std::vector<std::int64_t>> epochs(3);
  for (std::int64_t k = 0; k < 12; ++k) {
    const std::vector<float> pixels = pixels_of(*data, k);
    for (std::int64_t row = 0; row < batch; ++row) {
      const std::int64_t label = labels_of(*data, k)[static_cast<std::size_t>(row)];
      EXPECT_EQ(pixels[static_cast<std::size_t>(row * image)], static_cast<float>(10 * label));
      epochs[static_cast<std::size_t>(k / 4)].push_back(label);
    }
  }
  std::vector<std::int64_t> all(8);
  std::iota(all.begin(), all.end(), 0);
  for (const auto &epoch : epochs)
    EXPECT_THAT(epoch, testing::UnorderedElementsAreArray(all));
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  EXPECT_TRUE(data->check(0, 12).is_ok());
  EXPECT_THAT(data->check(0, 13).message(), HasSubstr("4 micro-batches an epoch, --epochs 3 gives 12"));
}

TEST(Samples, BytesAreFractionsAndChannelsComeFirst) {
  temporary_folder folder;
  for (bool has_channels_last : {false, true}) {
    std::unique_ptr<data_source> data;
    std::string path = folder.write("a.safetensors", file_of(counted(0, 2, true, has_channels_last)));
    ASSERT_TRUE(open({path}, data).is_ok());
    EXPECT_THAT(data->describe(), HasSubstr("'pixels' in fractions of 255"));
    EXPECT_EQ(data->describe().find("channels moved first") != std::string::npos, has_channels_last);
    std::vector<float> found = pixels_of(*data, 0);
    for (std::int64_t i = 0; i < image; ++i)
      EXPECT_EQ(found[static_cast<std::size_t>(i)], static_cast<float>(i) / 255.0F);
    ASSERT_TRUE(open({path}, data, false, {{"pixels", {0.5F, 0.25F, 0}, {0.5F, 2, 4}}}).is_ok());
    found = pixels_of(*data, 0);
    const float means[] = {0.5F, 0.25F, 0}, deviations[] = {0.5F, 2, 4};
    for (std::int64_t i = 0; i < image; ++i)
      EXPECT_EQ(found[static_cast<std::size_t>(i)],
                (static_cast<float>(i) / 255.0F - means[i / width]) / deviations[i / width]);
  }
}

TEST(Samples, RanksReadTheirRows) {
  temporary_folder folder;
  std::unique_ptr<data_source> data;
  ASSERT_TRUE(open({folder.write("a.safetensors", file_of(counted(0, 2)))}, data).is_ok());
  // The second row, and of it the last two channels.
  box held = whole_box({batch, channels, height, width});
  held.begin = {1, 1, 0, 0};
  held.sizes = {1, 2, height, width};
  std::vector<float> out(4);
  ASSERT_TRUE(data->read(0, 0, part_of(held), reinterpret_cast<std::byte *>(out.data())).is_ok());
  EXPECT_EQ(out, (std::vector<float>{12, 13, 14, 15}));
}

TEST(Samples, WrongFilesSaySo) {
  temporary_folder folder;
  auto with = [](std::vector<array> arrays, const char *from, const char *to) {
    for (array &each : arrays)
      if (std::size_t at = each.shape.find(from); at != std::string::npos)
        each.shape.replace(at, std::string(from).size(), to);
    return file_of(arrays);
  };
  std::vector<array> labels = {counted(0, 4)[1]}, fewer = {counted(0, 4)[0], counted(0, 3)[1]}, mixed = counted(0, 4),
                     strings = {counted(0, 4)[0], {"labels", "F32", "[4]", std::string(16, '\0')}},
                     large = counted(9, 2);
  mixed.push_back({"labels.0", "I64", "[2]", std::string(16, '\0')});
  const std::vector<std::pair<std::string, const char *>> cases = {
      {file_of(labels), "holds samples of 'labels', but none of input 'pixels'"},
      {file_of(fewer), "holds 4 samples of 'pixels', but 3 of 'labels'"},
      {file_of(mixed), "mix explicit batches and samples"},
      {file_of(strings), "holds 'labels' as F32[4], but samples of the input are I64"},
      {with(counted(0, 4), ",3,1,2", ",2,3,1"),
       "holds 'pixels' as F32[4, 2, 3, 1], but samples of the input are F32[3, 1, 2]"},
      {file_of(counted(0, 1)), "has 1 sample, one micro-batch takes 2"},
      {file_of({counted(0, 0)}), "has 0 samples, one micro-batch takes 2"},
  };
  for (const auto &[bytes, message] : cases) {
    std::unique_ptr<data_source> data;
    status s = open({folder.write("a.safetensors", bytes)}, data);
    EXPECT_EQ(s.code(), status_code::bad_input) << message;
    EXPECT_THAT(s.message(), HasSubstr(message));
  }
  std::unique_ptr<data_source> data;
  ASSERT_TRUE(open({folder.write("a.safetensors", file_of(large))}, data).is_ok());
  EXPECT_THAT(data->check_values(1 << 20).message(),
              HasSubstr("holds the id 10 at position 1; input 'labels' takes ids below 10"));
  const std::string good = folder.write("a.safetensors", file_of(counted(0, 4)));
  EXPECT_THAT(open({good}, data, false, {{"labels", {1}, {1}}}).message(), HasSubstr("only floats are normalized"));
  EXPECT_THAT(open({good}, data, false, {{"words", {1}, {1}}}).message(), HasSubstr("'words', which is no input"));
  EXPECT_THAT(open({good}, data, false, {{"pixels", {1, 2}, {1, 2}}}).message(),
              HasSubstr("gives 2 means for 'pixels', which has 3 channels"));
  // Inputs that differ in their first dim have no samples in common.
  const std::int64_t three[] = {3};
  const input_entry uneven[] = {inputs[0], {"labels", element_type::i64, {three, 1}, feed::none, 10}};
  job j = image_job();
  j.inputs = {uneven, 2};
  data_settings settings;
  settings.files = {good};
  EXPECT_THAT(open_data(j, settings, data).message(),
              HasSubstr("input 'labels' is [3], not samples of which a batch has 2; give explicit batches"));
}
