// Timelines, and the names of operators in them.
#include "timeline.h"

#include "windlass/rt/json.h"

#include "operator_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace windlass::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// operators.json of a program with a stream for compute and one for a communicator.
constexpr char emitted[] = R"({"version": 4, "names": ["a", "", "b\"}]\n</script>"], "positions": [[{"chunk": 0,
  "forward": [[0, 2], []], "backward": [[2], [1]], "last_backward": [[2, 0], [0]], "weight_gradient": [[1], []],
  "last_weight_gradient": [[0, 1], []], "reduce": [[], [2]], "update": [[1], []]}]]})";

std::string refusal_of(const std::string &what, const std::string &by) {
  std::string text = emitted;
  text.replace(text.find(what), what.size(), by);
  operator_names names;
  status read = names.read(text, 0, 2);
  return read.is_ok() ? "" : read.message();
}

} // namespace

TEST(OperatorNames, FollowTheActionsOfAStep) {
  operator_names names;
  ASSERT_TRUE(names.read(emitted, 0, 2).is_ok());
  const auto act = [](action_kind kind, bool is_last) {
    action out;
    out.kind = kind;
    out.is_last = is_last;
    return out;
  };
  const action forward = act(action_kind::forward, false), backward = act(action_kind::backward, false),
               last = act(action_kind::backward, true), weights = act(action_kind::weight_gradient, false),
               last_weights = act(action_kind::weight_gradient, true), reduce = act(action_kind::reduce, true),
               update = act(action_kind::update, true);
  const std::vector<const action *> step = {&forward, &backward, &forward, &last, &reduce, &update};
  const std::string b = "b\"}]\n</script>";
  EXPECT_THAT(names.of(0, step), ElementsAre("a", b, b, "a", b, b, "a", ""));
  EXPECT_THAT(names.of(1, step), ElementsAre("", "a", b));
  EXPECT_THAT(names.of(0, {&weights, &last_weights}), ElementsAre("", "a", ""));
  EXPECT_TRUE(names.of(0, {}).empty());
}

TEST(OperatorNames, OtherTextsAreRefused) {
  EXPECT_EQ(refusal_of("[1]", "[2]"), ""); // what is refused below is the change
  EXPECT_THAT(refusal_of("\"version\": 4", "\"version\": 3"), HasSubstr("version 4"));
  EXPECT_THAT(refusal_of("\"positions\"", "\"other\""), HasSubstr("'positions'"));
  EXPECT_THAT(refusal_of("[[{", "[7, [{"), HasSubstr("no list of chunks"));
  EXPECT_THAT(refusal_of("\"chunk\": 0", "\"chunk\": -1"), HasSubstr("a chunk without a number"));
  EXPECT_THAT(refusal_of("\"chunk\": 0", "\"chunk\": 3000000000"), HasSubstr("a chunk without a number"));
  operator_names names;
  EXPECT_THAT(names.read(emitted, 1, 2).message(), HasSubstr("lacks position 1"));
  EXPECT_THAT(refusal_of("\"names\"", "\"other\""), HasSubstr("lacks 'names'"));
  EXPECT_THAT(refusal_of("\"a\"", "7"), HasSubstr("a name that is no text"));
  EXPECT_THAT(refusal_of("\"a\"", "\"" + std::string(1025, 'x') + "\""), HasSubstr("at most 1024 bytes"));
  for (const char *place : {"[3]", "[-1]", "[0.5]", "[\"a\"]", "[[0]]", "{\"a\": 0}", "[18446744073709551616]"})
    EXPECT_THAT(refusal_of("[1]", place), HasSubstr("a name that it lacks")) << place;
  EXPECT_THAT(refusal_of("\"update\": [[1], []]", "\"update\": [[1]]"), HasSubstr("'update' for each of 2 streams"));
  EXPECT_THAT(refusal_of("\"update\"", "\"updates\""), HasSubstr("'update' for each of 2 streams"));
  EXPECT_NE(refusal_of("]}]]}", "]}]}"), "");
}

TEST(Timeline, NamesAreEscaped) {
  const stream_entry streams[] = {{stream_kind::compute, "compute"}, {stream_kind::communicator, "over \"data\""}};
  std::vector<kernel_times> times(2);
  for (kernel_times &of_stream : times) {
    of_stream.keep_commands(true);
    of_stream.add({"matmul", 8, 16, {2, 2}}, 1.0, 1.5);
  }
  json root;
  ASSERT_TRUE(parse_json(timeline_text(3, {streams, 2}, times, {{"a\"}]\n\xff"}, {}}), root).is_ok());
  std::vector<const json *> commands;
  std::vector<std::string> threads;
  for (const json &event : root.find("traceEvents")->items)
    if (event.find("ph")->string == "X")
      commands.push_back(event.find("args"));
    else if (event.find("name")->string == "thread_name")
      threads.push_back(event.find("args")->find("name")->string);
  EXPECT_THAT(threads, ElementsAre("compute", "over \"data\"")); // as the program's table has them
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_EQ(commands[0]->find("operator")->string, "a\"}]\n\xef\xbf\xbd");
  EXPECT_EQ(commands[1]->find("operator"), nullptr); // not known
}
