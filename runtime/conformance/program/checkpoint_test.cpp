// Manifests and the merge of checkpoints, without a program; and manifests that are not to be trusted.
#include "windlass/rt/checkpoint.h"

#include "box.h"
#include "temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <numeric>

using namespace windlass::rt;
using namespace windlass::rt::test;
using testing::HasSubstr;

namespace {

/// Writes a checkpoint of one tensor [2, 4] = 0..7 in two pieces, and one state tensor.
checkpoint_manifest write_checkpoint(const temporary_folder &root, const std::string &name, std::int64_t step = 3) {
  const std::string folder = root / name;
  std::filesystem::create_directories(folder);
  checkpoint_manifest manifest;
  manifest.step = step;
  manifest.next_micro_batch = 12;
  manifest.seed = ~0ull;
  manifest.model = "m \"x\"";
  manifest.plan_hash = "h";
  manifest.optimizer = "lion";
  checkpoint_tensor w = {"w", false, element_type::f32, {2, 4}, {}, {}};
  checkpoint_tensor m = {"w/exp_avg", true, element_type::f32, {1}, {}, {}};
  auto write = [&](const std::string &file_name, const std::string &key, std::vector<std::int64_t> sizes,
                   std::vector<float> values) {
    safetensors_writer writer;
    std::vector<safetensors_entry> entries = {{key, element_type::f32, sizes, 0, 0}};
    checkpoint_file file;
    file.name = file_name;
    EXPECT_TRUE(writer.create(root.create(file_name, name), entries).is_ok());
    EXPECT_TRUE(writer.append(values.data(), static_cast<std::int64_t>(values.size() * 4)).is_ok());
    EXPECT_TRUE(writer.finish(file.digest, file.bytes).is_ok());
    manifest.files.push_back(file);
  };
  write("a.safetensors", "w@[0, 0]", {2, 3}, {0, 1, 2, 4, 5, 6});
  write("b.safetensors", "w@[0, 3]", {2, 1}, {3, 7});
  write("s.safetensors", "w/exp_avg", {1}, {9});
  w.add_piece(0, {0, 0}, {2, 3});
  w.add_piece(1, {0, 3}, {2, 1});
  m.add_piece(2, {0}, {1});
  manifest.tensors = {w, m};
  EXPECT_TRUE(replace_file(join_path(folder, "manifest.json"), manifest_text(manifest)).is_ok());
  return manifest;
}

} // namespace

TEST(Checkpoint, ManifestsReadBack) {
  temporary_folder folder;
  checkpoint_manifest wrote = write_checkpoint(folder, "c"), read;
  status s = read_manifest(folder / "c", read);
  ASSERT_TRUE(s.is_ok()) << s.message();
  EXPECT_EQ(manifest_text(read), manifest_text(wrote));
  EXPECT_EQ(read.seed, ~0ull);
  s = verify_checkpoint(folder / "c", read);
  EXPECT_TRUE(s.is_ok()) << s.message();
}

TEST(Checkpoint, OlderManifestsDoNotSayTheirOptimizer) {
  temporary_folder folder;
  checkpoint_manifest wrote = write_checkpoint(folder, "c"), read;
  wrote.optimizer.clear();
  ASSERT_TRUE(replace_file(folder / "c/manifest.json", manifest_text(wrote)).is_ok());
  const status s = read_manifest(folder / "c", read);
  ASSERT_TRUE(s.is_ok()) << s.message();
  EXPECT_EQ(read.optimizer, "");
}

TEST(Checkpoint, AnyBoxCanBeRead) {
  temporary_folder folder;
  checkpoint_manifest manifest = write_checkpoint(folder, "c");
  checkpoint_index index;
  ASSERT_TRUE(index.open(folder / "c", manifest).is_ok());
  checkpoint_reader reader(index);
  float values[4] = {};
  ASSERT_TRUE(
      reader.read(*manifest.find("w"), part_of({{0, 2}, {2, 2}}), reinterpret_cast<std::byte *>(values)).is_ok());
  EXPECT_THAT(values, testing::ElementsAre(2, 3, 6, 7));
}

TEST(Checkpoint, ExportMergesPiecesByName) {
  temporary_folder folder;
  write_checkpoint(folder, "c");
  status s = export_checkpoint(folder / "c", folder / "out.safetensors", exported::parameters);
  ASSERT_TRUE(s.is_ok()) << s.message();
  auto merged = read_floats(folder / "out.safetensors");
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_THAT(merged["w"], testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  ASSERT_TRUE(export_checkpoint(folder / "c", folder / "out.safetensors", exported::all).is_ok());
  EXPECT_THAT(read_floats(folder / "out.safetensors")["w/exp_avg"], testing::ElementsAre(9));
}

TEST(Checkpoint, ExportOfARunTakesTheNewestValidOne) {
  temporary_folder folder;
  write_checkpoint(folder, "checkpoints/step-000003", 3);
  write_checkpoint(folder, "checkpoints/step-000010", 10);
  std::filesystem::create_directories(folder / "checkpoints/.step-000011.partial");
  folder.write("checkpoints/step-000010/b.safetensors", "cut");
  std::vector<checkpoint_listing> found;
  ASSERT_TRUE(list_checkpoints(folder.path(), found).is_ok());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].step, 10);
  EXPECT_TRUE(export_checkpoint(folder.path(), folder / "out.safetensors", exported::parameters).is_ok());
  EXPECT_THAT(export_checkpoint(folder / "checkpoints", folder / "x", exported::parameters).message(),
              HasSubstr("holds no checkpoint"));
}

TEST(Checkpoint, DamageIsFound) {
  temporary_folder folder;
  checkpoint_manifest manifest = write_checkpoint(folder, "c");
  std::string path = folder / "c/b.safetensors", bytes = read_all(path);
  bytes[bytes.size() - 1] ^= 1;
  folder.write("c/b.safetensors", bytes);
  EXPECT_THAT(verify_checkpoint(folder / "c", manifest).message(), HasSubstr("has the hash"));
  folder.write("c/b.safetensors", bytes.substr(1));
  EXPECT_THAT(verify_checkpoint(folder / "c", manifest).message(), HasSubstr("its manifest says"));
  std::filesystem::remove(path);
  EXPECT_FALSE(verify_checkpoint(folder / "c", manifest).is_ok());
}

TEST(Checkpoint, UntrustedManifestsAreChecked) {
  temporary_folder folder;
  const checkpoint_manifest good = write_checkpoint(folder, "c");
  struct {
    std::function<void(checkpoint_manifest &)> change;
    const char *message;
  } cases[] = {
      {[](auto &m) { m.files[0].name = "../a.safetensors"; }, "not in its folder"},
      {[](auto &m) { m.files[0].name = ".a"; }, "not in its folder"},
      {[](auto &m) { m.files[1].name = "a.safetensors"; }, "twice"},
      {[](auto &m) { m.step = -1; }, "not a natural number"},
      {[](auto &m) { m.skipped_updates = 4; }, "left out more updates"},
      {[](auto &m) { m.scale = {3, 0, 0}; }, "no power of two"},
      {[](auto &m) { m.scale = {2, -1, 0}; }, "not a natural number"},
      {[](auto &m) { m.tensors[1].name = "w"; }, "twice"},
      {[](auto &m) { m.tensors[0].files.pop_back(); }, "with 6 of its 8 elements"},
      {[](auto &m) { m.tensors[0].add_piece(0, {0, 0}, {2, 1}); }, "overlap"},
      {[](auto &m) { m.tensors[0].extents[5] = 4; }, "outside its shape"}, // where the second piece begins
      {[](auto &m) { m.tensors[0].extents[5] = INT64_MAX; }, "outside its shape"},
      {[](auto &m) { m.tensors[0].sizes = {INT64_MAX, INT64_MAX}; }, "impossible sizes"},
  };
  for (const auto &c : cases) {
    checkpoint_manifest bad = good, read;
    c.change(bad);
    folder.write("c/manifest.json", manifest_text(bad));
    status s = read_manifest(folder / "c", read);
    EXPECT_EQ(s.code(), status_code::bad_input) << c.message;
    EXPECT_THAT(s.message(), HasSubstr(c.message));
  }
  const struct {
    const char *part, *other, *message;
  } edits[] = {
      {"{\"file\": \"b.safetensors\"", "{\"file\": \"z.safetensors\"", "does not list"},
      {"\"begin\": [0, 3]", "\"begin\": [0]", "outside its shape"},
      {"w@[0, 3]", "w@[0, 2]", "under the key"},
      {"\"files\"", "\"other\"", "before its 'files'"},
      {"\"tensors\"", "\"other\"", "lacks a proper 'tensors'"},
  };
  for (const auto &edit : edits) {
    checkpoint_manifest read;
    std::string text = manifest_text(good);
    text.replace(text.find(edit.part), std::string_view(edit.part).size(), edit.other);
    folder.write("c/manifest.json", text);
    EXPECT_THAT(read_manifest(folder / "c", read).message(), HasSubstr(edit.message));
  }
  for (const char *text : {"", "{}", "[]", "{\"version\": 2}", "{\"version\": 1, \"step\": 1e2}"}) {
    checkpoint_manifest read;
    folder.write("c/manifest.json", text);
    EXPECT_EQ(read_manifest(folder / "c", read).code(), status_code::bad_input) << text;
  }
}

TEST(Checkpoint, NamesAreExact) {
  EXPECT_EQ(checkpoint_name(20), "step-000020");
  EXPECT_EQ(parse_checkpoint_name("step-000020"), 20);
  EXPECT_EQ(parse_checkpoint_name("step-1234567"), 1234567);
  for (const char *name : {"step-20", "step-0000020", "step-", ".step-000020", "step-00002x", "step--00020"})
    EXPECT_EQ(parse_checkpoint_name(name), -1) << name;
}
