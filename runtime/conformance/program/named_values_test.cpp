#include "named_values.h"

#include "temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace windlass::rt;
using namespace windlass::rt::test;
using testing::HasSubstr;

namespace {

constexpr std::int64_t two[] = {2};

struct NamedValues : testing::Test {
  /// Opens files, or fails, for a model whose parameters, each of two elements, have these names.
  status open(const std::vector<const char *> &parameters, const std::vector<std::string> &paths) {
    rows.clear();
    for (const char *name : parameters) {
      parameter_entry row;
      row.name = name;
      row.sizes = {two, 1};
      rows.push_back(row);
    }
    j.parameters = {rows.data(), static_cast<std::int64_t>(rows.size())};
    values = named_values();
    return values.open(paths, j);
  }

  /// Writes a file of tensors of two elements; the first has 1 and 2, the next 3 and 4.
  std::string write(const std::string &name, const std::vector<std::string> &tensors) const {
    std::string header = "{";
    std::vector<float> data;
    for (const std::string &tensor : tensors) {
      header += std::string(data.empty() ? "" : ",") + "\"" + tensor +
                R"(":{"dtype":"F32","shape":[2],"data_offsets":[)" + std::to_string(4 * data.size()) + "," +
                std::to_string(4 * data.size() + 8) + "]}";
      data.push_back(static_cast<float>(data.size() + 1));
      data.push_back(static_cast<float>(data.size() + 1));
    }
    return folder.write(name, safetensors_bytes(header + "}", bytes_of(data)));
  }

  std::string found(const char *parameter) const {
    const named_values::tensor its = values.find(parameter);
    return its.entry ? its.entry->name : "";
  }

  temporary_folder folder;
  std::vector<parameter_entry> rows;
  job j;
  named_values values;
};

} // namespace

TEST_F(NamedValues, AreThoseOfTheSameName) {
  ASSERT_TRUE(
      open({"a.x", "a.y", "z"}, {write("one.safetensors", {"a.x", "b"}), write("two.safetensors", {"z"})}).is_ok());
  EXPECT_EQ(found("a.x"), "a.x");
  EXPECT_EQ(found("a.y"), "");
  EXPECT_EQ(found("z"), "z");
  float read[2] = {};
  const named_values::tensor its = values.find("z");
  ASSERT_TRUE(its.file->read(*its.entry, 0, sizeof read, read).is_ok());
  EXPECT_EQ(read[1], 2);
  EXPECT_EQ(values.describe(j), "initial values: 2 of 3 parameters from 2 files; not in them: 'a.y'; not used: 'b'");
}

TEST_F(NamedValues, OfABaseLackThePartOfTheWholeModel) {
  ASSERT_TRUE(open({"base.x", "base.y", "head"}, {write("base.safetensors", {"x", "y"})}).is_ok());
  EXPECT_EQ(found("base.y"), "y");
  EXPECT_EQ(found("head"), "");
  EXPECT_THAT(values.describe(j),
              HasSubstr("2 of 3 parameters from 1 file, whose names lack 'base.'; not in them: 'head'"));
  ASSERT_TRUE(open({"x", "y"}, {write("whole.safetensors", {"base.x", "base.y", "head"})}).is_ok());
  EXPECT_EQ(found("x"), "base.x");
  EXPECT_THAT(values.describe(j), HasSubstr("whose names have 'base.' in front; not used: 'head'"));
}

// A table of tokens that is tied to the head: one of the two names is in the file, the other in the model.
TEST_F(NamedValues, OfATiedTableAreFoundByItsSizes) {
  constexpr std::int64_t tall[] = {4, 1}, wide[] = {2, 2};
  const std::string path = folder.write(
      "tied.safetensors", safetensors_bytes(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                            R"("wte":{"dtype":"F32","shape":[4,1],"data_offsets":[8,24]},)"
                                            R"("other":{"dtype":"F32","shape":[2,2],"data_offsets":[24,40]}})",
                                            std::string(40, '\0')));
  input_entry ids;
  ids.vocabulary = 4;
  j.inputs = {&ids, 1};
  const auto load = [&](const char *name, const std::int64_t (&sizes)[2]) {
    EXPECT_TRUE(open({"x"}, {path}).is_ok());
    parameter_entry table;
    table.name = name;
    table.sizes = {sizes, 2};
    rows.push_back(table);
    j.parameters = {rows.data(), 2};
    values = named_values();
    EXPECT_TRUE(values.open({path}, j).is_ok());
  };
  load("head", tall);
  EXPECT_EQ(found("head"), "wte");
  EXPECT_EQ(values.describe(j),
            "initial values: 2 of 2 parameters from 1 file; 'head' is the table 'wte'; not used: 'other'");
  // Neither what is no table of ids, nor one of other sizes.
  load("head", wide);
  EXPECT_EQ(found("head"), "");
  ids.vocabulary = 0;
  load("head", tall);
  EXPECT_EQ(found("head"), "");
}

TEST_F(NamedValues, OfManyFilesAreFoundByTheirIndex) {
  write("1.safetensors", {"x"});
  write("2.safetensors", {"y"});
  const std::string index = folder.write("index.json", R"({"weight_map":{"x":"1.safetensors","y":"2.safetensors"}})");
  ASSERT_TRUE(open({"x", "y"}, {index}).is_ok());
  EXPECT_EQ(found("y"), "y");
}

TEST_F(NamedValues, ThatDisagreeAreRefused) {
  const std::string x = write("x.safetensors", {"x"});
  const std::string wide =
      folder.write("wide.safetensors", safetensors_bytes(R"({"x":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})",
                                                         std::string(8, '\0')));
  const std::pair<std::vector<std::string>, const char *> cases[] = {
      {{x, write("again.safetensors", {"x"})}, "again.safetensors' holds 'x', and so does "},
      {{wide}, "holds 'x' as [1, 2], the program takes [2]"},
      {{write("others.safetensors", {"q", "r"})},
       "has the name of a parameter; the first tensor is 'q', the first parameter 'x'"},
      {{folder.write("up.json", R"({"weight_map":{"x":"../x.safetensors"}})")},
       "names a file '../x.safetensors'; files have to lie beside it"},
      {{folder.write("no.json", "{}")}, "has no object 'weight_map'"},
      {{folder.write("number.json", R"({"weight_map":{"x":1}})")}, "names a file that is no text"},
      {{folder.write("cut.json", "{")}, "cut.json' is "},
      {{folder / "none.safetensors"}, "none.safetensors"}};
  for (const auto &[paths, said] : cases) {
    const status refused = open({"x"}, paths);
    ASSERT_FALSE(refused.is_ok()) << said;
    EXPECT_THAT(refused.message(), HasSubstr(said));
  }
}
