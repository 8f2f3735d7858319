// A checkpoint of 5,000 tensors over 512 ranks, as threads with 256 descriptors: saved, verified, found and loaded.
#include "windlass/rt/checkpoint.h"
#include "windlass/rt/context.h"
#include "windlass/rt/transport.h"

#include "../one_job.h"
#include "control.h"
#include "saving.h"
#include "temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include <sys/resource.h>

using namespace windlass::rt;
using namespace windlass::rt::test;
using testing::HasSubstr;

namespace {

/// A program of parameters of [ranks], each with one state tensor, all cut into an element for each rank.
class wide_program {
public:
  wide_program(std::int32_t ranks, std::int64_t parameters, std::size_t name_bytes = 0) {
    axes_ = {{"data", ranks}};
    sizes_ = {ranks};
    for (std::int64_t i = 0; i < parameters; ++i) {
      names_.push_back("p" + std::to_string(i));
      names_.back().resize(std::max(name_bytes, names_.back().size()), 'x');
      parameters_.push_back(
          {names_.back().c_str(), element_type::f32, {sizes_.data(), 1}, {}, initializer::ones, true, true});
      placements_.push_back(
          {static_cast<std::int32_t>(i), element_type::f32, {cuts_, 1}, {0, i * 4}, {cuts_, 1}, {0, i * 4}});
      states_.push_back({static_cast<std::int32_t>(i), "m", {0, (parameters + i) * 4}});
    }
    arenas_ = {{memory_kind::device, parameters * 8, "device"}};
    static constexpr stream_entry streams[] = {{stream_kind::compute, "compute"}};
    program p = {};
    p.arenas = {arenas_.data(), 1};
    p.streams = {streams, 1};
    p.parameters = {placements_.data(), parameters};
    p.states = {states_.data(), parameters};
    job j = {};
    j.model = "wide";
    j.plan_hash = "89";
    j.precision = "f32";
    j.parameters = {parameters_.data(), parameters};
    out_.emplace(span<axis>{axes_.data(), 1}, p, j);
  }
  wide_program(const wide_program &) = delete;
  wide_program &operator=(const wide_program &) = delete;
  const one_job &get() const { return *out_; }

private:
  static constexpr split cuts_[] = {{0, 0, 1}};
  std::vector<axis> axes_;
  std::vector<std::int64_t> sizes_;
  std::deque<std::string> names_;
  std::vector<parameter_entry> parameters_;
  std::vector<state_entry> states_;
  std::vector<parameter_placement> placements_;
  std::vector<arena_entry> arenas_;
  std::optional<one_job> out_;
};

/// Runs `f` as every rank of a program, each a thread, and gives the first error.
status as_ranks(const one_job &p, const std::function<status(context &, control &)> &f) {
  const std::int32_t ranks = p.position.ranks;
  std::vector<std::unique_ptr<transport>> worlds = make_local_transports(ranks);
  std::vector<status> results(static_cast<std::size_t>(ranks));
  std::vector<std::thread> team;
  for (std::size_t rank = 0; rank < results.size(); ++rank)
    team.emplace_back([&, rank] {
      context c;
      control all;
      status &result = results[rank];
      result = all.create(*worlds[rank]);
      if (result.is_ok())
        result = c.create(p, *worlds[rank], 1);
      if (result.is_ok())
        result = f(c, all);
      if (!result.is_ok())
        worlds[rank]->abort(result);
    });
  for (std::thread &thread : team)
    thread.join();
  for (status &result : results)
    WINDLASS_TRY(std::move(result));
  return ok_status();
}

/// Limits this process to `most` file descriptors for as long as it lives.
class descriptor_limit {
public:
  explicit descriptor_limit(rlim_t most) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lower = {most, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &lower), 0);
  }
  ~descriptor_limit() { setrlimit(RLIMIT_NOFILE, &before_); }

private:
  rlimit before_ = {};
};

} // namespace

TEST(LargeCheckpoint, IsSavedAndLoadedWithFewDescriptors) {
  constexpr std::int32_t ranks = 512;
  constexpr std::int64_t parameters = 2500;
  temporary_folder folder;
  std::filesystem::create_directories(folder / "checkpoints");
  const wide_program wide(ranks, parameters);
  const one_job &p = wide.get();
  ASSERT_TRUE(check_checkpoints(p, 0).is_ok());
  const descriptor_limit limit(256);
  auto floats = [](context &c) { return reinterpret_cast<float *>(c.at({0, 0})); };
  auto expected = [](const context &c, std::int64_t i) { return static_cast<float>(i * ranks + c.rank()); };

  status done = as_ranks(p, [&](context &c, control &all) {
    for (std::int64_t i = 0; i < 2 * parameters; ++i)
      floats(c)[i] = expected(c, i);
    save_point at;
    at.step = 7;
    return save_checkpoint(p, c, all, folder.path(), at);
  });
  ASSERT_TRUE(done.is_ok()) << done.message();

  // find_resume reads the manifest and verifies every file.
  std::string found;
  checkpoint_manifest manifest;
  done = find_resume(folder.path(), "", found, manifest, [](const std::string &line) { ADD_FAILURE() << line; });
  ASSERT_TRUE(done.is_ok()) << done.message();
  EXPECT_EQ(manifest.tensors.size(), 2u * parameters);
  EXPECT_EQ(manifest.files.size(), 2u * ranks);

  checkpoint_index index;
  ASSERT_TRUE(index.open(found, manifest).is_ok());
  std::vector<std::int64_t> wrong(ranks, -1);
  done = as_ranks(p, [&](context &c, control &) {
    std::int64_t &mine = wrong[static_cast<std::size_t>(c.rank())];
    WINDLASS_TRY(load_checkpoint(member(p, c.rank()), c, index));
    mine = 0;
    for (std::int64_t i = 0; i < 2 * parameters; ++i)
      mine += floats(c)[i] != expected(c, i);
    return ok_status();
  });
  ASSERT_TRUE(done.is_ok()) << done.message();
  EXPECT_THAT(wrong, testing::Each(0));
}

TEST(LargeCheckpoint, WhatCouldNotBeReadAgainIsRefusedBefore) {
  const wide_program wide(4096, 3, 40000);
  EXPECT_THAT(check_checkpoints(wide.get(), 0).message(), HasSubstr("the manifest of a checkpoint would have"));
  const wide_program deep(2, 2000, 40000);
  EXPECT_THAT(check_checkpoints(deep.get(), 1).message(), HasSubstr("a header of 2000 tensors would have"));
}

namespace {

/// Four strips around a middle of rows: no dimension divides these pieces into groups.
checkpoint_tensor pinwheel(const std::string &name, std::int64_t rows) {
  const std::int64_t side = rows + 2;
  checkpoint_tensor out = {name, false, element_type::f32, {side, side}, {}, {}};
  out.add_piece(0, {0, 0}, {1, side - 1});
  out.add_piece(0, {0, side - 1}, {side - 1, 1});
  out.add_piece(0, {side - 1, 1}, {1, side - 1});
  out.add_piece(0, {1, 0}, {side - 1, 1});
  for (std::int64_t row = 1; row <= rows; ++row)
    out.add_piece(0, {row, 1}, {1, rows});
  return out;
}

status read_again(const std::vector<checkpoint_tensor> &tensors) {
  temporary_folder folder;
  checkpoint_manifest manifest, read;
  manifest.files = {{"a.safetensors", 16, std::string(64, '0')}};
  manifest.tensors = tensors;
  folder.write("manifest.json", manifest_text(manifest));
  return read_manifest(folder.path(), read);
}

} // namespace

TEST(LargeCheckpoint, PiecesAreToldApartInBoundedTime) {
  EXPECT_TRUE(read_again({pinwheel("w", 100)}).is_ok());
  std::vector<checkpoint_tensor> many;
  for (int i = 0; i < 60; ++i)
    many.push_back(pinwheel("w" + std::to_string(i), max_pieces - 4));
  EXPECT_THAT(read_again(many).message(), HasSubstr("take too long to tell apart"));
}

TEST(LargeCheckpoint, GridsOfAnySizeAreRead) {
  std::vector<checkpoint_tensor> many;
  for (int i = 0; i < 60; ++i) {
    many.push_back({"w" + std::to_string(i), false, element_type::f32, {64, 64}, {}, {}});
    for (std::int64_t piece = 0; piece < max_pieces; ++piece)
      many.back().add_piece(0, {piece % 64, piece / 64}, {1, 1});
  }
  const status read = read_again(many);
  EXPECT_TRUE(read.is_ok()) << read.message();
  many.back().extents[0] = 1; // two of one place
  EXPECT_THAT(read_again(many).message(), HasSubstr("that overlap"));
}
