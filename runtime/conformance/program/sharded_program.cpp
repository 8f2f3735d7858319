#include "test_programs.h"

#include "windlass/rt/context.h"

#include <gtest/gtest.h>

namespace windlass::rt::test {

namespace {

constexpr std::int64_t split_at = 0, state_at = 128, whole_at = 256, gradient_at = 320, input_at = 448, loss_at = 512;
constexpr std::int64_t norm_at = 516, lr_at = 520, arena_bytes = 576;

float *floats(context &c, std::int64_t offset) { return reinterpret_cast<float *>(c.device().at(offset)); }

std::int64_t local_elements(context &c) { return 24 / c.ranks(); }

status forward(context &c, std::int64_t) {
  // The mean over ranks would need a collective; element 0 of the whole parameter is the same everywhere.
  *floats(c, loss_at) = *floats(c, whole_at) + *floats(c, input_at);
  return ok_status();
}

status backward(context &c, std::int64_t) {
  for (std::int64_t i = 0; i < local_elements(c); ++i)
    floats(c, gradient_at)[i] = floats(c, split_at)[i] * 10;
  return ok_status();
}

status update(context &c) {
  *floats(c, norm_at) = 1;
  for (std::int64_t i = 0; i < local_elements(c); ++i) {
    floats(c, split_at)[i] += *floats(c, lr_at);
    floats(c, state_at)[i] += 1;
  }
  for (std::int64_t i = 0; i < 4; ++i)
    floats(c, whole_at)[i] += *floats(c, lr_at);
  return ok_status();
}

const std::int64_t split_sizes[] = {4, 6}, whole_sizes[] = {4}, input_sizes[] = {1};
const split splits[] = {{1, 0}};
constexpr element_type f32 = element_type::f32;
const source external = {source_kind::external, "values.bin", 4, 96}, packed = {source_kind::packed, nullptr, 0, 0};
const parameter_entry parameters[] = {
    {{"split", f32, {split_sizes, 2}, {splits, 1}, split_at}, external, initializer::normal, true, true},
    {{"whole", f32, {whole_sizes, 1}, {}, whole_at}, packed, initializer::ones, true, false}};
const state_entry states[] = {{"momentum_buffer", 0, state_at}};
const gradient_entry gradients[] = {{0, gradient_at}};
const input_entry inputs[] = {{{"x", f32, {input_sizes, 1}, {}, input_at}, feed::none, 0}};
const scalar_entry scalars[] = {{scalar::learning_rate, lr_at}};
const axis one_axis[] = {{"model", 1}}, two_axes[] = {{"model", 2}};
const action actions[] = {
    {action_kind::forward, 0, 0, 0}, {action_kind::backward_reduce, 0, 0, 0}, {action_kind::update, 0, 0, 0}};

program make(span<axis> axes) {
  program p = {};
  p.version = 1;
  p.model = "sharded";
  p.plan_hash = "4567";
  p.axes = axes;
  p.data_axis = -1;
  p.micro_batches = 1;
  p.kind = optimizer::sgd;
  p.device_bytes = arena_bytes;
  p.streams = 1;
  p.parameters = {parameters, 2};
  p.states = {states, 1};
  p.gradients = {gradients, 1};
  p.inputs = {inputs, 1};
  p.scalars = {scalars, 1};
  p.loss_offset = loss_at;
  p.grad_norm_offset = norm_at;
  p.actions = {actions, 3};
  p.forward = forward;
  p.backward_reduce = backward;
  p.update = update;
  return p;
}

} // namespace

const program &sharded_program(int ranks) {
  static const program one = make({one_axis, 1}), two = make({two_axes, 1});
  return ranks == 1 ? one : two;
}

run_result run(const program &p, std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"train", "--threads", "1"});
  std::vector<char *> argv;
  for (std::string &flag : flags)
    argv.push_back(flag.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  run_result out;
  out.code = run_program(p, static_cast<int>(argv.size()), argv.data());
  out.out = testing::internal::GetCapturedStdout();
  out.err = testing::internal::GetCapturedStderr();
  return out;
}

} // namespace windlass::rt::test
