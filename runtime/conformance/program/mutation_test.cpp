// Files with a few bytes changed, cut or repeated: readers give a status, whatever they hold. Most useful under a
// sanitizer; the changes are the same in every run.
#include "windlass/rt/checkpoint.h"
#include "windlass/rt/json.h"

#include "data.h"
#include "operator_names.h"
#include "random.h"
#include "temporary_folder.h"
#include "test_programs.h"

#include <gtest/gtest.h>

#include <functional>

using namespace windlass::rt;
using namespace windlass::rt::test;

namespace {

/// Gives `check` a few hundred damaged variants of `good`.
void mutate(const std::string &good, const std::function<void(const std::string &)> &check) {
  for (std::uint64_t round = 0; round < 400; ++round) {
    std::string bad = good;
    for (std::uint64_t change = 0; change < 1 + round % 3; ++change) {
      auto [where, what, how, unused] = philox(round, change, 7);
      std::size_t at = where % bad.size();
      switch (how % 5) {
      case 0:
        bad[at] = static_cast<char>(what);
        break;
      case 1:
        bad[at] = static_cast<char>(bad[at] ^ (1 << what % 8));
        break;
      case 2:
        bad.resize(at + 1);
        break;
      case 3:
        bad.insert(at, bad.substr(at, what % 16));
        break;
      case 4:
        bad[at] = "0123456789[]{}\",:-e"[what % 19];
        break;
      }
    }
    check(bad);
  }
}

std::string tokens(std::int64_t count) {
  return bytes_of(std::vector<std::uint16_t>(static_cast<std::size_t>(count), 5));
}

} // namespace

TEST(Mutation, DataFilesNeverCrash) {
  temporary_folder folder;
  std::string batches = safetensors_bytes(R"({"ids.0":{"dtype":"U16","shape":[4,8],"data_offsets":[0,64]},)"
                                          R"("labels.0":{"dtype":"U16","shape":[4,8],"data_offsets":[64,128]}})",
                                          tokens(64));
  std::string npy = std::string("\x93NUMPY\x01\x00\x3e\x00", 10) +
                    "{'descr': '<u2', 'fortran_order': False, 'shape': (100,), }   \n" + tokens(100);
  std::vector<std::int32_t> header(256);
  header[0] = 20240520, header[1] = 1, header[2] = 100;
  int opened = 0;
  for (const auto &[name, good] : std::vector<std::pair<std::string, std::string>>{
           {"b.safetensors", batches}, {"n.npy", npy}, {"t.bin", bytes_of(header) + tokens(100)}})
    mutate(good, [&, name = name](const std::string &bad) {
      data_settings settings;
      settings.files = {folder.write(name, bad)};
      std::unique_ptr<data_source> data;
      std::vector<std::int64_t> out(32);
      if (!open_data(bigram_program(1), settings, data).is_ok())
        return;
      ++opened;
      for (std::size_t input : {0, 1})
        static_cast<void>(
            data->read(input, 0, part_of(whole_box({4, 8})), reinterpret_cast<std::byte *>(out.data())).is_ok());
    });
  EXPECT_GT(opened, 100); // the files were good enough to reach the reads
}

TEST(Mutation, ManifestsNeverCrash) {
  temporary_folder folder;
  checkpoint_manifest manifest;
  manifest.files = {{"a.safetensors", 16, std::string(64, '0')}};
  checkpoint_tensor w = {"w", false, element_type::f32, {2, 4}, {}, {}};
  w.add_piece(0, {0, 0}, {2, 2});
  w.add_piece(0, {0, 2}, {2, 2});
  manifest.tensors = {w};
  int read = 0;
  mutate(manifest_text(manifest), [&](const std::string &bad) {
    folder.write("manifest.json", bad);
    checkpoint_manifest out;
    read += read_manifest(folder.path(), out).is_ok();
  });
  EXPECT_GT(read, 10);
}

TEST(Mutation, OperatorNamesNeverCrash) {
  const action forward = {action_kind::forward, 0, 0, 0, 0, true, true, 0, 0},
               backward = {action_kind::backward, 0, 0, 0, 0, true, false, 0, 0},
               last = {action_kind::backward, 0, 1, 0, 0, false, true, 0, 0},
               reduce = {action_kind::reduce, 0, 1, 0, 0, true, true, 0, 0},
               update = {action_kind::update, 0, 0, 0, 0, true, true, 0, 0};
  int read = 0;
  mutate(
      R"({"version":4,"names":["a","","layers.0.add"],"positions":[[{"chunk":0,"forward":[[0,2,1],[]],"backward":[[2],[1]],)"
      R"("last_backward":[[2,0],[0]],"weight_gradient":[[1],[]],"last_weight_gradient":[[],[]],"reduce":[[],[1]],)"
      R"("update":[[1,1,1],[]]}]]})",
      [&](const std::string &bad) {
        operator_names names;
        if (!names.read(bad, 0, 2).is_ok())
          return;
        ++read;
        for (std::size_t stream : {0, 1})
          for (std::string_view name : names.of(stream, {&forward, &backward, &last, &reduce, &update}))
            EXPECT_LE(name.size(), 1024u);
      });
  EXPECT_GT(read, 5);
}
