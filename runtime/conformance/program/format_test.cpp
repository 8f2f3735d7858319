// JSON, hashes, safetensors and event files: known values, and inputs that are not what they say.
#include "windlass/rt/hash.h"
#include "windlass/rt/json.h"
#include "windlass/rt/safetensors.h"

#include "metrics.h"
#include "sha256_blocks.h"
#include "temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

using namespace windlass::rt;
using namespace windlass::rt::test;
using testing::HasSubstr;

TEST(Json, ReadsEveryKindOfValue) {
  json value;
  ASSERT_TRUE(
      parse_json(R"( {"a": [1, -2.5e1, true, false, null], "b": "x\n\u00e4\ud83d\ude00", "": {}} )", value).is_ok());
  ASSERT_TRUE(value.is_object());
  const json &a = *value.find("a");
  ASSERT_EQ(a.items.size(), 5u);
  EXPECT_TRUE(a.items[0].is_integer);
  EXPECT_EQ(a.items[0].integer, 1);
  EXPECT_FALSE(a.items[1].is_integer);
  EXPECT_EQ(a.items[1].number, -25.0);
  EXPECT_TRUE(a.items[2].boolean);
  EXPECT_EQ(a.items[4].kind, json::type::null);
  EXPECT_EQ(value.find("b")->string, "x\n\xc3\xa4\xf0\x9f\x98\x80");
  EXPECT_NE(value.find(""), nullptr);
  EXPECT_EQ(value.find("c"), nullptr);
}

TEST(Json, KeepsWholeNumbersExact) {
  json value;
  ASSERT_TRUE(parse_json("18446744073709551615", value).is_ok());
  EXPECT_TRUE(value.is_unsigned);
  EXPECT_FALSE(value.is_integer);
  EXPECT_EQ(value.natural, 18446744073709551615u);
}

TEST(Json, RefusesWhatIsNotStrictJson) {
  for (const char *text : {"",
                           "{",
                           "[1,]",
                           "{\"a\":1,}",
                           "{\"a\":1,\"a\":2}",
                           "01",
                           "1.",
                           ".5",
                           "+1",
                           "1e999",
                           "nul",
                           "\"\\x\"",
                           "\"\n\"",
                           "\"\\ud800\"",
                           "\"\xc0\xaf\"",
                           "\"\xed\xa0\x80\"",
                           "[1] 2",
                           "'a'",
                           "{a:1}",
                           "\"open",
                           "-",
                           "[",
                           "NaN"}) {
    json value;
    EXPECT_FALSE(parse_json(text, value).is_ok()) << text;
  }
}

TEST(Json, IsBounded) {
  json value;
  status deep = parse_json(std::string(100000, '['), value);
  EXPECT_THAT(deep.message(), HasSubstr("nested too deeply"));
  json_limits limits;
  limits.values = 10;
  EXPECT_THAT(parse_json("[1,2,3,4,5,6,7,8,9,10]", value, limits).message(), HasSubstr("too many values"));
}

TEST(Json, ReadsValueByValue) {
  json_limits limits;
  limits.values = 3; // of each value, not of the document
  json_reader reader(R"({"a": [[1, 2], [3, 4], [5, 6]], "b": 7})", limits);
  std::vector<std::int64_t> sums;
  const status read = reader.object([&](std::string &key) -> status {
    json value;
    if (key == "b")
      return reader.value(value);
    return reader.array([&]() -> status {
      WINDLASS_TRY(reader.value(value));
      sums.push_back(value.items[0].integer + value.items[1].integer);
      return ok_status();
    });
  });
  ASSERT_TRUE(read.is_ok()) << read.message();
  EXPECT_TRUE(reader.end().is_ok());
  EXPECT_THAT(sums, testing::ElementsAre(3, 7, 11));
  json value;
  EXPECT_THAT(json_reader("[1, 2, 3]", limits).value(value).message(), HasSubstr("too many values"));
}

TEST(Json, KeysAreToldApartHoweverMany) {
  std::string text = "{";
  for (int i = 0; i < 100; ++i)
    text += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
  json value;
  EXPECT_TRUE(parse_json(text + "}", value).is_ok());
  for (const char *twice : {"k3", "k77"})
    EXPECT_THAT(parse_json(text + ",\"" + twice + "\":0}", value).message(), HasSubstr("is repeated"));
}

TEST(Json, WritesWhatItReads) {
  EXPECT_EQ(json_string("a\"\\\n\x01\xc3\xa4"), "\"a\\\"\\\\\\u000a\\u0001\xc3\xa4\"");
  EXPECT_EQ(json_string("\xff"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(json_number(0.1f), "0.1");
  EXPECT_EQ(json_number(NAN), "null");
  json value;
  ASSERT_TRUE(parse_json(json_number(1.0 / 3), value).is_ok());
  EXPECT_EQ(value.number, 1.0 / 3);
}

TEST(Hash, Sha256MatchesTheStandard) {
  EXPECT_EQ(sha256().finish_hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  sha256 abc;
  abc.update("abc", 3);
  EXPECT_EQ(abc.finish_hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  sha256 parts;
  std::string million(1000000, 'a');
  for (std::size_t at = 0; at < million.size(); at += 77)
    parts.update(million.data() + at, std::min<std::size_t>(77, million.size() - at));
  EXPECT_EQ(parts.finish_hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Hash, BothWaysToCompressAgree) {
  if (!has_sha256_instructions())
    GTEST_SKIP() << "the processor has no SHA instructions";
  std::vector<std::uint8_t> blocks(64 * 5);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    blocks[i] = static_cast<std::uint8_t>(i * i + 3 * i);
  std::uint32_t a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, b[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  sha256_portable(a, blocks.data(), 5);
  sha256_accelerated(b, blocks.data(), 5);
  EXPECT_TRUE(std::equal(a, a + 8, b));
  EXPECT_NE(a[0], 1u);
}

TEST(Hash, Crc32cMatchesRfc3720) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  std::string zeros(32, '\0');
  EXPECT_EQ(crc32c(zeros.data(), zeros.size()), 0x8a9136aau);
}

TEST(Safetensors, WritesAndReadsBack) {
  temporary_folder folder;
  std::vector<safetensors_entry> entries = {{"b", element_type::u8, {3}, 0, 0},
                                            {"a \"q\"", element_type::f32, {2, 2}, 0, 0},
                                            {"s", element_type::i64, {}, 0, 0},
                                            {"e", element_type::f32, {0, 4}, 0, 0}};
  std::map<std::string, std::string> data = {
      {"b", "xyz"}, {"a \"q\"", bytes_of<float>({1, 2, 3, 4})}, {"s", bytes_of<std::int64_t>({7})}, {"e", ""}};
  safetensors_writer writer;
  ASSERT_TRUE(writer.create(folder.create("t.safetensors"), entries).is_ok());
  for (const safetensors_entry &entry : entries)
    ASSERT_TRUE(writer.append(data[entry.name].data(), entry.bytes).is_ok());
  std::string digest;
  std::int64_t bytes = 0;
  ASSERT_TRUE(writer.finish(digest, bytes).is_ok());
  std::string text = read_all(folder / "t.safetensors");
  EXPECT_EQ(static_cast<std::int64_t>(text.size()), bytes);
  sha256 hash;
  hash.update(text.data(), text.size());
  EXPECT_EQ(hash.finish_hex(), digest);
  safetensors_file file;
  status opened = file.open(folder / "t.safetensors");
  ASSERT_TRUE(opened.is_ok()) << opened.message();
  ASSERT_EQ(file.entries().size(), 4u);
  const safetensors_entry *a = file.find("a \"q\"");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->offset % 8, 0);
  float values[2] = {};
  ASSERT_TRUE(file.read(*a, 8, 8, values).is_ok());
  EXPECT_EQ(values[1], 4);
  EXPECT_FALSE(file.read(*a, 12, 8, values).is_ok());
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST(Safetensors, RefusesMalformedFiles) {
  temporary_folder folder;
  const std::string four(4, 'x');
  auto entry = [](const std::string &type, const std::string &shape, const std::string &offsets) {
    return "{\"a\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is not a safetensors file"},
      {"1234567", "is not a safetensors file"},
      {std::string(8, '\xff'), "its header would have"},
      {safetensors_bytes("[]", ""), "an object is missing"},
      {safetensors_bytes("{", ""), "not JSON"},
      {safetensors_bytes("{\"a\":1}", ""), "lacks a dtype"},
      {safetensors_bytes(entry("F32", "[1]", "[0,4]"), ""), "lies at bytes"},
      {safetensors_bytes(entry("F32", "[2]", "[0,4]"), four), "but holds 4 bytes"},
      {safetensors_bytes(entry("F32", "[-1]", "[0,4]"), four), "but holds 4 bytes"},
      {safetensors_bytes(entry("F32", "[4611686018427387904,4]", "[0,0]"), ""), "but holds 0 bytes"},
      {safetensors_bytes(entry("Q7", "[1]", "[0,4]"), four), "is not supported"},
      {safetensors_bytes(entry("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), four), "has rank 9"},
      {safetensors_bytes(entry("F32", "[1]", "[-4,0]"), four), "lies at bytes"},
      {safetensors_bytes(entry("F32", "[1.5]", "[0,4]"), four), "not an integer"},
      {safetensors_bytes(entry("F32", "[1]", "[0,4]"), four + "y"), "its tensors end at"},
      {safetensors_bytes(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                         R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                         four),
       "where byte 4 is next"}};
  for (const auto &[bytes, message] : cases) {
    safetensors_file file;
    status opened = file.open(folder.write("bad.safetensors", bytes));
    EXPECT_EQ(opened.code(), status_code::bad_input);
    EXPECT_THAT(opened.message(), HasSubstr(message));
  }
  safetensors_file file;
  EXPECT_FALSE(file.open(folder / "missing").is_ok());
  EXPECT_FALSE(file.open(folder.path()).is_ok());
}

TEST(Events, AreFramedWithMaskedChecksums) {
  temporary_folder folder;
  event_file events;
  ASSERT_TRUE(events.open(folder.path(), 1).is_ok());
  ASSERT_TRUE(events.add(3, {{"loss", 1.5f}}).is_ok());
  std::string text;
  for (const auto &entry : std::filesystem::directory_iterator(folder.path()))
    text = read_all(entry.path());
  int records = 0;
  auto little = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (int i = 3; i >= 0; --i)
      value = value << 8 | static_cast<unsigned char>(text[at + static_cast<std::size_t>(i)]);
    return value;
  };
  auto masked = [](std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; };
  for (std::size_t at = 0; at < text.size(); ++records) {
    std::size_t length = little(at);
    ASSERT_LE(at + 16 + length, text.size());
    EXPECT_EQ(little(at + 8), masked(crc32c(text.data() + at, 8)));
    EXPECT_EQ(little(at + 12 + length), masked(crc32c(text.data() + at + 12, length)));
    at += 16 + length;
  }
  EXPECT_EQ(records, 3);
  EXPECT_THAT(text, HasSubstr("brain.Event:2"));
  EXPECT_THAT(text, HasSubstr(std::string("\x0a\x04loss\x15") + bytes_of<float>({1.5f})));
}

TEST(Metrics, AFileLargerThanMemoryWouldHoldIsCut) {
  temporary_folder folder;
  const std::string path = folder.write("metrics.jsonl", "{\"step\": 1}\n");
  // More than 1 GiB in one line that is no row: the file has a hole.
  std::filesystem::resize_file(path, (std::uintmax_t(1) << 30) + 100);
  std::ofstream(path, std::ios::app) << "\n{\"step\": 2}\n{\"step\": 3}\n";
  metrics_file file;
  const status opened = file.open(folder.path(), 2);
  ASSERT_TRUE(opened.is_ok()) << opened.message();
  EXPECT_EQ(read_all(path), "{\"step\": 1}\n{\"step\": 2}\n");
}

TEST(Metrics, RowsAfterTheResumedStepAreCut) {
  temporary_folder folder;
  {
    metrics_file file;
    ASSERT_TRUE(file.open(folder.path(), 0).is_ok());
    for (std::int64_t step = 1; step <= 4; ++step)
      ASSERT_TRUE(
          file.add({step, 2.5f, NAN, true, 1e-3, 0.5, 4, 64, step == 1 ? NAN : 0.25, {{1e6, 0.4, 0, 3, 5, 16, 7, 9}}})
              .is_ok());
    ASSERT_TRUE(file.add_evaluation(4, 2.25, 3).is_ok());
  }
  folder.write("metrics.jsonl", read_all(folder / "metrics.jsonl") + "{\"step\": 2, \"lo");
  metrics_file file;
  ASSERT_TRUE(file.open(folder.path(), 2).is_ok());
  EXPECT_EQ(read_all(folder / "metrics.jsonl"),
            "{\"step\": 1, \"loss\": 2.5, \"grad_norm\": null, \"lr\": 0.001, \"seconds\": 0.5, \"tokens_per_s\": 128, "
            "\"samples_per_s\": 8, "
            "\"predicted_seconds\": null, \"precision\": \"f32\", \"collective_bytes\": {\"all_reduce\": 1000000, "
            "\"all_gather\": 0, "
            "\"reduce_scatter\": 0, \"all_to_all\": 3, \"permute\": 5, \"scalars\": 16, \"send\": 7, \"rows\": 9}}\n"
            "{\"step\": 2, \"loss\": 2.5, \"grad_norm\": null, \"lr\": 0.001, \"seconds\": 0.5, \"tokens_per_s\": 128, "
            "\"samples_per_s\": 8, "
            "\"predicted_seconds\": 0.25, \"precision\": \"f32\", \"collective_bytes\": {\"all_reduce\": 1000000, "
            "\"all_gather\": 0, "
            "\"reduce_scatter\": 0, \"all_to_all\": 3, \"permute\": 5, \"scalars\": 16, \"send\": 7, \"rows\": 9}}\n");
}
