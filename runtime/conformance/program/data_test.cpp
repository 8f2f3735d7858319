// Readers of token files and explicit batches: every format, the order of windows, and files that are wrong.
#include "data.h"
#include "label_counter.h"

#include "temporary_folder.h"
#include "test_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

using namespace windlass::rt;
using namespace windlass::rt::test;
using testing::HasSubstr;

namespace {

constexpr std::int64_t B = bigram_batch, T = bigram_tokens;

template <class T> std::vector<T> counting(std::int64_t count, std::int64_t modulo = 256) {
  std::vector<T> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<T>(static_cast<std::int64_t>(i) % modulo);
  return out;
}

std::string llmc(std::int32_t magic, std::int32_t version, std::int32_t count, const std::string &tokens) {
  std::vector<std::int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytes_of(header) + tokens;
}

std::string npy(const std::string &type, const std::string &shape, const std::string &data, bool fortran = false) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size() & 255) +
         static_cast<char>(header.size() >> 8) + header + data;
}

void put(std::string &out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> (8 * i) & 255);
}

/// A zip archive of one entry, as numpy.savez writes it (checksums are not looked at).
std::string npz(const std::string &name, const std::string &data, int method = 0) {
  auto size = static_cast<std::uint32_t>(data.size()), length = static_cast<std::uint32_t>(name.size());
  std::string common, out = std::string("PK\3\4");
  put(common, 20, 2), put(common, 0, 2), put(common, static_cast<std::uint32_t>(method), 2), put(common, 0, 4);
  put(common, 0, 4), put(common, size, 4), put(common, size, 4), put(common, length, 2), put(common, 0, 2);
  out += common + name + data;
  std::uint32_t directory = static_cast<std::uint32_t>(out.size());
  out += std::string("PK\1\2");
  put(out, 20, 2);
  out += common;
  put(out, 0, 2), put(out, 0, 2), put(out, 0, 2), put(out, 0, 4), put(out, 0, 4);
  out += name;
  std::uint32_t directory_bytes = static_cast<std::uint32_t>(out.size()) - directory;
  out += std::string("PK\5\6");
  put(out, 0, 4), put(out, 1, 2), put(out, 1, 2), put(out, directory_bytes, 4), put(out, directory, 4), put(out, 0, 2);
  return out;
}

std::vector<std::int64_t> read(data_source &data, std::size_t input, std::int64_t k) {
  std::vector<std::int64_t> out(B * T);
  status s = data.read(input, k, part_of(whole_box({B, T})), reinterpret_cast<std::byte *>(out.data()));
  EXPECT_TRUE(s.is_ok()) << s.message();
  return out;
}

/// Explicit batches of these numbers: batch k has the id k everywhere, and the label k - 100.
std::string explicit_batches(const std::vector<int> &numbers) {
  std::string entries, data;
  for (int k : numbers)
    for (const char *name : {"ids", "labels"}) {
      std::int64_t at = static_cast<std::int64_t>(data.size());
      entries += (entries.empty() ? "" : ",") + ("\"" + std::string(name)) + "." + std::to_string(k) +
                 "\":{\"dtype\":\"I32\",\"shape\":[4,8],\"data_offsets\":[" + std::to_string(at) + "," +
                 std::to_string(at + 128) + "]}";
      data += bytes_of(std::vector<std::int32_t>(32, name[0] == 'i' ? k : k - 100));
    }
  return safetensors_bytes("{" + entries + "}", data);
}

status open(std::vector<std::string> files, std::unique_ptr<data_source> &out, bool bytes = false,
            std::uint64_t seed = 0, bool shuffles = true) {
  data_settings settings;
  settings.files = std::move(files);
  settings.bytes = bytes;
  settings.seed = seed;
  settings.shuffles_windows = shuffles;
  return open_data(bigram_program(1), settings, out);
}

} // namespace

TEST(Data, EveryTokenFormatGivesTheSameWindows) {
  temporary_folder folder;
  const std::int64_t n = 10 * T + 1;
  std::string u16 = bytes_of(counting<std::uint16_t>(n)), i32 = bytes_of(counting<std::int32_t>(n));
  std::string shape = "(" + std::to_string(n) + ",)";
  struct {
    std::string path;
    bool bytes;
  } files[] = {
      {folder.write("a.txt", bytes_of(counting<std::uint8_t>(n))), true},
      {folder.write("b.bin", u16), false},
      {folder.write("c.bin", llmc(20240520, 1, n, u16)), false},
      {folder.write("d.bin", llmc(20240801, 7, n, i32)), false},
      {folder.write("e.npy", npy("<u2", shape, u16)), false},
      {folder.write("f.npy", npy("<i4", shape, i32)), false},
      {folder.write("g.npz", npz("arr_0.npy", npy("<i4", shape, i32))), false},
  };
  for (const auto &file : files) {
    std::unique_ptr<data_source> data;
    status s = open({file.path}, data, file.bytes, 0, false);
    ASSERT_TRUE(s.is_ok()) << s.message();
    EXPECT_EQ(data->micro_batches(), 2) << file.path;
    std::vector<std::int64_t> ids = read(*data, 0, 1), labels = read(*data, 1, 1);
    for (std::int64_t i = 0; i < B * T; ++i) {
      EXPECT_EQ(ids[static_cast<std::size_t>(i)], B * T + i) << file.path;
      EXPECT_EQ(labels[static_cast<std::size_t>(i)], B * T + i + 1) << file.path;
    }
  }
}

TEST(Data, AnEpochTakesEveryWindowOnceInItsOwnOrder) {
  temporary_folder folder;
  std::vector<std::uint16_t> tokens(8 * B * T + 1);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::uint16_t>(i / T); // the window's number
  std::string path = folder.write("t.bin", bytes_of(tokens));
  std::unique_ptr<data_source> data, other_seed;
  ASSERT_TRUE(open({path}, data, false, 5).is_ok());
  ASSERT_TRUE(open({path}, other_seed, false, 6).is_ok());
  ASSERT_EQ(data->micro_batches(), 8);
  std::vector<std::int64_t> epochs[2], other;
  for (std::int64_t k = 0; k < 16; ++k)
    for (std::int64_t b = 0; b < B; ++b) {
      epochs[k / 8].push_back(read(*data, 0, k)[static_cast<std::size_t>(b * T)]);
      if (k < 8)
        other.push_back(read(*other_seed, 0, k)[static_cast<std::size_t>(b * T)]);
    }
  for (const auto &order : {epochs[0], epochs[1], other})
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 32u);
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[0], other);
}

TEST(Data, ALocalPartIsTheSameAsItsPlaceInTheWhole) {
  temporary_folder folder;
  std::string path = folder.write("t.bin", bytes_of(counting<std::uint16_t>(40 * T)));
  std::unique_ptr<data_source> data;
  ASSERT_TRUE(open({path}, data).is_ok());
  std::vector<std::int64_t> whole = read(*data, 1, 3), part(2 * T / 2);
  ASSERT_TRUE(data->read(1, 3, part_of({{2, T / 2}, {2, T / 2}}), reinterpret_cast<std::byte *>(part.data())).is_ok());
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t t = 0; t < T / 2; ++t)
      EXPECT_EQ(part[static_cast<std::size_t>(b * T / 2 + t)],
                whole[static_cast<std::size_t>((b + 2) * T + t + T / 2)]);
}

TEST(Data, APartOfSeveralBoxesIsTheSameAsItsPlacesInTheWhole) {
  const axis axes[] = {{"a", 2}, {"b", 2}};
  const split splits[] = {{0, 0, 2}, {1, 1, T / 4}}; // samples in pairs, tokens in fours
  temporary_folder folder;
  std::string path = folder.write("t.bin", bytes_of(counting<std::uint16_t>(40 * T)));
  std::unique_ptr<data_source> data;
  ASSERT_TRUE(open({path}, data).is_ok());
  const std::vector<std::int64_t> whole = read(*data, 1, 3);
  const std::int64_t key_sizes[] = {B, T};
  const input_entry dropouts = {"keys", element_type::i64, {key_sizes, 2}, feed::random, 0};
  std::vector<std::int64_t> all_keys(B * T);
  write_dropout_keys(dropouts, 9, 3, part_of(whole_box({B, T})), reinterpret_cast<std::byte *>(all_keys.data()));
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    tensor_part local = local_part({B, T}, {splits, 2}, {axes, 2}, rank);
    ASSERT_EQ(local.boxes.size(), 2u * T / 4);
    auto expected = [&](const std::vector<std::int64_t> &of) {
      std::vector<std::int64_t> out(static_cast<std::size_t>(local.elements()));
      copy_overlap(whole_box({B, T}), reinterpret_cast<const std::byte *>(of.data()), local,
                   reinterpret_cast<std::byte *>(out.data()), 8);
      return out;
    };
    std::vector<std::int64_t> part(static_cast<std::size_t>(local.elements()), -1), own_keys = part;
    status s = data->read(1, 3, local, reinterpret_cast<std::byte *>(part.data()));
    ASSERT_TRUE(s.is_ok()) << s.message();
    EXPECT_EQ(part, expected(whole)) << rank;
    write_dropout_keys(dropouts, 9, 3, local, reinterpret_cast<std::byte *>(own_keys.data()));
    EXPECT_EQ(own_keys, expected(all_keys)) << rank;
  }
}

TEST(Data, WindowsDoNotCrossFiles) {
  temporary_folder folder;
  std::string a = folder.write("a.bin", bytes_of(counting<std::uint16_t>(3 * T + 5)));
  std::string b = folder.write("b.bin", bytes_of(counting<std::uint16_t>(T)));
  std::string c = folder.write("c.bin", bytes_of(counting<std::uint16_t>(T + 1)));
  std::unique_ptr<data_source> data;
  ASSERT_TRUE(open({a, b, c}, data, false, 0, false).is_ok());
  std::vector<std::int64_t> labels = read(*data, 1, 0);
  EXPECT_EQ(labels[0], 1);
  EXPECT_EQ(labels[2 * T], 2 * T + 1);
  EXPECT_EQ(labels[3 * T], 1); // file b is too short for a window that looks one token ahead
}

TEST(Data, ExplicitBatchesAreTakenInOrder) {
  temporary_folder folder;
  std::string path = folder.write("b.safetensors", explicit_batches({0, 1}));
  std::unique_ptr<data_source> source;
  status s = open({path}, source);
  ASSERT_TRUE(s.is_ok()) << s.message();
  EXPECT_EQ(source->micro_batches(), 2);
  EXPECT_EQ(read(*source, 0, 1), std::vector<std::int64_t>(32, 1));
  EXPECT_EQ(read(*source, 1, 0), std::vector<std::int64_t>(32, -100));
  EXPECT_TRUE(source->check(0, 2).is_ok());
  s = source->check(0, 3);
  EXPECT_EQ(s.code(), status_code::bad_input);
  EXPECT_THAT(s.message(), HasSubstr("lacks 'ids.2'"));
}

TEST(Data, EpochsOfExplicitBatchesAreInOrderOrShuffled) {
  temporary_folder folder;
  data_settings settings;
  settings.files = {folder.write("b.safetensors", explicit_batches({0, 1, 2, 3, 4, 5, 6}))};
  settings.epochs = 3;
  auto take = [&](std::uint64_t seed, bool shuffles) {
    settings.seed = seed;
    settings.shuffles_batches = shuffles;
    std::unique_ptr<data_source> source;
    status s = open_data(bigram_program(1), settings, source);
    EXPECT_TRUE(s.is_ok()) << s.message();
    EXPECT_TRUE(source->check(20, 1).is_ok());
    s = source->check(20, 2);
    EXPECT_THAT(s.message(), HasSubstr("7 micro-batches an epoch, --epochs 3 gives 21, but the run takes 22"));
    std::vector<std::vector<std::int64_t>> epochs(3);
    for (std::int64_t k = 0; k < 21; ++k) {
      epochs[static_cast<std::size_t>(k / 7)].push_back(read(*source, 0, k)[0]);
      EXPECT_EQ(read(*source, 1, k)[0], read(*source, 0, k)[0] - 100);
    }
    return epochs;
  };
  const std::vector<std::int64_t> in_order = {0, 1, 2, 3, 4, 5, 6};
  for (const auto &epoch : take(0, false))
    EXPECT_EQ(epoch, in_order);
  const auto shuffled = take(3, true);
  for (const auto &epoch : shuffled)
    EXPECT_THAT(epoch, testing::UnorderedElementsAreArray(in_order));
  EXPECT_NE(shuffled[0], shuffled[1]);
  EXPECT_NE(shuffled[1], shuffled[2]);
  EXPECT_EQ(shuffled, take(3, true));
  EXPECT_NE(shuffled, take(4, true));
}

TEST(Data, EpochsLeaveNoBatchOut) {
  temporary_folder folder;
  data_settings settings;
  settings.files = {folder.write("b.safetensors", explicit_batches({0, 1, 3}))};
  std::unique_ptr<data_source> source;
  ASSERT_TRUE(open_data(bigram_program(1), settings, source).is_ok());
  EXPECT_TRUE(source->check(0, 2).is_ok());
  settings.epochs = 1;
  ASSERT_TRUE(open_data(bigram_program(1), settings, source).is_ok());
  EXPECT_THAT(source->check(0, 2).message(), HasSubstr("lacks 'ids.2'"));
}

TEST(Data, EpochsBoundTokenFiles) {
  temporary_folder folder;
  data_settings settings;
  settings.files = {folder.write("t.bin", bytes_of(counting<std::uint16_t>(10 * T + 1)))};
  std::unique_ptr<data_source> source;
  ASSERT_TRUE(open_data(bigram_program(1), settings, source).is_ok());
  EXPECT_TRUE(source->check(0, 1000).is_ok());
  settings.epochs = 2;
  ASSERT_TRUE(open_data(bigram_program(1), settings, source).is_ok());
  EXPECT_TRUE(source->check(0, 4).is_ok());
  EXPECT_THAT(source->check(0, 5).message(), HasSubstr("2 micro-batches an epoch, --epochs 2 gives 4"));
}

TEST(Data, IdsAreFoundBeforeTheyAreRead) {
  temporary_folder folder;
  std::vector<std::uint16_t> tokens(8 * B * T + 1, 3);
  tokens[5 * B * T] = 700;
  for (const std::string &path :
       {folder.write("t.bin", bytes_of(tokens)), folder.write("b.safetensors", explicit_batches({0, 1, 700}))}) {
    std::unique_ptr<data_source> source;
    ASSERT_TRUE(open({path}, source).is_ok());
    EXPECT_TRUE(source->check_values(16).is_ok());
    status s = source->check_values(1 << 20);
    EXPECT_EQ(s.kind(), diagnostic::data_value);
    EXPECT_THAT(s.message(), HasSubstr("holds the id 700"));
  }
}

TEST(Data, WrongFilesSaySo) {
  temporary_folder folder;
  std::string u16 = bytes_of(counting<std::uint16_t>(100));
  auto batch = [](const std::string &dtype, const std::string &shape, std::size_t bytes) {
    return safetensors_bytes("{\"ids.0\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[0," +
                                 std::to_string(bytes) + "]}}",
                             std::string(bytes, '\0'));
  };
  std::vector<std::pair<std::string, const char *>> cases = {
      {folder / "missing.bin", "No such file"},
      {folder.write("empty.bin", ""), "is empty"},
      {folder.write("odd.bin", "abc"), "odd number of bytes"},
      {folder.write("a.txt", "hello"), "give --bytes"},
      {folder.write("short.bin", "ab"), "is too short: its 1 token gives 0 windows of 8"},
      {folder.write("v9.bin", llmc(20240520, 9, 100, u16)), "version 9"},
      {folder.write("cut.bin", llmc(20240520, 1, 101, u16)), "its header says 101 tokens"},
      {folder.write("float.npy", npy("<f4", "(2,)", "12345678")), "not tokens"},
      {folder.write("text.npy", npy("<U4", "(2,)", "12345678")), "is not supported"},
      {folder.write("cut.npy", npy("<i4", "(3,)", "12345678")), "should hold 12 bytes"},
      {folder.write("huge.npy", npy("<i4", "(9223372036854775807, 8)", "")), "impossible"},
      {folder.write("shape.npy", npy("<i4", "(3", "")), "shape cannot be read"},
      {folder.write("fortran.npy", npy("<i4", "(1, 1)", "1234", true)), "Fortran"},
      {folder.write("header.npy", std::string("\x93NUMPY\x01\x00\xff\xff", 10) + "abcd"), "header would have"},
      {folder.write("packed.npz", npz("a.npy", npy("<i4", "(1,)", "1234"), 8)), "is compressed"},
      {folder.write("cut.npz", npz("a.npy", npy("<i4", "(1,)", "1234")).substr(0, 60)), "not a whole zip"},
      {folder.write("other.safetensors", safetensors_bytes("{}", "")), "neither batches of the model's inputs, such as 'ids.0', nor samples"},
      {folder.write("type.safetensors", batch("F32", "[4,8]", 128)), "is I64[4, 8]"},
      {folder.write("shape.safetensors", batch("I32", "[8,4]", 128)), "as I32[8, 4]"},
  };
  for (const auto &[path, message] : cases) {
    std::unique_ptr<data_source> data;
    status s = open({path}, data);
    EXPECT_EQ(s.code(), status_code::bad_input) << path;
    EXPECT_THAT(s.message(), HasSubstr(message));
    EXPECT_EQ(s.message().find('\n'), std::string::npos);
  }
}

TEST(Data, IdsBeyondTheVocabularyNameFilePositionAndId) {
  temporary_folder folder;
  std::vector<std::uint16_t> tokens = counting<std::uint16_t>(4 * T + 1);
  tokens[19] = 256;
  std::string path = folder.write("t.bin", bytes_of(tokens));
  std::unique_ptr<data_source> data;
  ASSERT_TRUE(open({path}, data).is_ok());
  std::vector<std::int64_t> out(B * T);
  status s = data->read(0, 0, part_of(whole_box({B, T})), reinterpret_cast<std::byte *>(out.data()));
  EXPECT_EQ(s.code(), status_code::bad_input);
  EXPECT_THAT(s.message(), testing::AllOf(HasSubstr("t.bin"), HasSubstr("id 256 at position 19"), HasSubstr("'ids'"),
                                          HasSubstr("below 256")));
}

TEST(Data, InputsThatAreNoneAreRefused) {
  temporary_folder folder;
  data_settings settings;
  settings.files = {folder.write("t.bin", bytes_of(counting<std::uint16_t>(100)))};
  settings.inputs = {{"words", feed::tokens}};
  std::unique_ptr<data_source> data;
  EXPECT_THAT(open_data(bigram_program(1), settings, data).message(), HasSubstr("'words', which is no input"));
  settings.inputs.clear();
  EXPECT_THAT(open_data(sharded_program(cut::whole), settings, data).message(),
              HasSubstr("has no feed from token files"));
}

TEST(Data, LabelsOfABoxAreCounted) {
  temporary_folder folder;
  std::vector<std::int32_t> labels(B * T, -100);
  // Three that count, and the first of a row, which is outside of the box.
  labels[1] = labels[T + 3] = labels[3 * T + 7] = 5;
  labels[T] = 7;
  std::string entries, data;
  for (const char *name : {"ids.0", "labels.0"}) {
    std::int64_t at = static_cast<std::int64_t>(data.size());
    entries += (entries.empty() ? "\"" : ",\"") + std::string(name) + "\":{\"dtype\":\"I32\",\"shape\":[4,8]," +
               "\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(at + 128) + "]}";
    data += bytes_of(name[0] == 'i' ? std::vector<std::int32_t>(B * T, 1) : labels);
  }
  std::unique_ptr<data_source> source;
  status s = open({folder.write("b.safetensors", safetensors_bytes("{" + entries + "}", data))}, source);
  ASSERT_TRUE(s.is_ok()) << s.message();
  one_job p = bigram_program(1);
  std::int64_t count;
  label_counter alike(p);
  ASSERT_TRUE(alike.count(*source, 0, count).is_ok());
  EXPECT_EQ(count, 1) << "without a table each micro-batch has the same weight";
  constexpr std::int64_t starts[] = {0, 1}, sizes[] = {B, T - 1};
  p.j.labels = {1, -100, {starts, 2}, {sizes, 2}};
  ASSERT_TRUE(check_labels(p).is_ok());
  label_counter shifted(p);
  ASSERT_TRUE(shifted.count(*source, 0, count).is_ok());
  EXPECT_EQ(count, 3);
  p.j.labels.ignored = 5;
  label_counter others(p);
  ASSERT_TRUE(others.count(*source, 0, count).is_ok());
  EXPECT_EQ(count, B * (T - 1) - 3);
  s = others.count(*source, 1, count);
  EXPECT_EQ(s.code(), status_code::bad_input);
  EXPECT_THAT(s.message(), HasSubstr("lacks 'labels.1'"));
}

TEST(Data, TablesOfLabelsThatAreWrongAreRefused) {
  constexpr std::int64_t starts[] = {0, 1}, sizes[] = {B, T - 1}, wide[] = {B, T}, none[] = {B, 0};
  const counted_labels tables[] = {{2, -100, {starts, 2}, {sizes, 2}},
                                   {-1, -100, {starts, 2}, {sizes, 2}},
                                   {1, -100, {starts, 2}, {wide, 2}},
                                   {1, -100, {starts, 2}, {none, 2}},
                                   {1, -100, {starts, 1}, {sizes, 1}}};
  for (const counted_labels &table : tables) {
    one_job p = bigram_program(1);
    p.j.labels = table;
    EXPECT_EQ(check_labels(p).code(), status_code::internal);
  }
  one_job p = bigram_program(1);
  constexpr scalar_entry scalars[] = {{scalar::inverse_label_count, {0, 0}}};
  p.p.scalars = {scalars, 1};
  EXPECT_EQ(check_labels(p).code(), status_code::internal) << "a scalar without labels";
}
