// Files of tensors, good ones and every way in which one can be bad.
#include "windlass/Interpreter/TensorFile.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass::interpreter;
using testing::HasSubstr;

namespace {

class TensorFileTest : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("tensors", "safetensors", path)); }
  void TearDown() override { llvm::sys::fs::remove(path); }

  void writeBytes(llvm::StringRef bytes) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << bytes;
    ASSERT_FALSE(error);
  }
  /// Returns the error of a file with header `header` and `data` bytes of data.
  std::string errorOf(llvm::StringRef header, size_t data) {
    std::string bytes(8, '\0');
    llvm::support::endian::write64le(bytes.data(), header.size());
    writeBytes(bytes + header.str() + std::string(data, '\0'));
    auto tensors = readTensorFile(path);
    return tensors ? "no error" : llvm::toString(tensors.takeError());
  }

  llvm::SmallString<128> path;
};

TEST_F(TensorFileTest, WhatIsWrittenIsRead) {
  TensorMap tensors;
  tensors["a \"b\""] = Tensor::filled(ElementKind::f32, {2, 3}, 1.5);
  tensors["empty"] = Tensor(ElementKind::f64, {0});
  tensors["scalar"] = Tensor::filled(ElementKind::i64, {}, -7);
  ASSERT_FALSE(writeTensorFile(path, tensors));
  auto found = readTensorFile(path);
  ASSERT_TRUE(static_cast<bool>(found)) << llvm::toString(found.takeError());
  EXPECT_EQ(found->size(), 3u);
  EXPECT_TRUE((*found)["a \"b\""].isSameAs(Tensor::filled(ElementKind::f64, {2, 3}, 1.5)));
  EXPECT_EQ((*found)["scalar"].at(0), -7);
}

TEST_F(TensorFileTest, BadFilesAreErrors) {
  writeBytes("abc");
  auto tensors = readTensorFile(path);
  ASSERT_FALSE(static_cast<bool>(tensors));
  EXPECT_THAT(llvm::toString(tensors.takeError()), HasSubstr("is no safetensors file: it has 3 bytes"));
  writeBytes(std::string(8, '\xff') + "{}");
  tensors = readTensorFile(path);
  ASSERT_FALSE(static_cast<bool>(tensors));
  EXPECT_THAT(llvm::toString(tensors.takeError()), HasSubstr("its header does not fit"));
  EXPECT_THAT(errorOf("{", 0), HasSubstr("is no JSON"));
  EXPECT_THAT(errorOf("[]", 0), HasSubstr("is no JSON object"));
  EXPECT_THAT(errorOf(std::string(100000, '['), 0), HasSubstr("nested too deeply"));
  EXPECT_THAT(errorOf(R"({"a":{"dtype":"F32","shape":[1]}})", 4), HasSubstr("lacks dtype, shape or data_offsets"));
  EXPECT_THAT(errorOf(R"({"a":{"dtype":"F8","shape":[1],"data_offsets":[0,1]}})", 4), HasSubstr("has the type 'F8'"));
  EXPECT_THAT(errorOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4), HasSubstr("its shape needs 8"));
  EXPECT_THAT(errorOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 4), HasSubstr("outside the file"));
  EXPECT_THAT(errorOf(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4), HasSubstr("cannot hold"));
  EXPECT_THAT(errorOf(R"({"a":{"dtype":"F32","shape":[9223372036854775807,2],"data_offsets":[0,4]}})", 4),
              HasSubstr("cannot hold"));
}

} // namespace
