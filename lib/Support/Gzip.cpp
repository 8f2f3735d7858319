#include "windlass/Support/Gzip.h"

#include "windlass/Support/StrictJson.h"

#include "llvm/Support/SmallVectorMemoryBuffer.h"

#include <cstring>
#include <vector>
#include <zlib.h>

using namespace windlass;

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> windlass::unpackGzip(llvm::StringRef packed, llvm::StringRef name,
                                                                         int64_t budget) {
  z_stream stream;
  std::memset(&stream, 0, sizeof(stream));
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
    return makeError("cannot start to unpack: out of memory");
  llvm::SmallVector<char, 0> out;
  std::vector<char> chunk(1 << 20);
  const char *next = packed.data();
  size_t left = packed.size();
  int status = Z_OK;
  llvm::Error error = llvm::Error::success();
  while (true) {
    if (stream.avail_in == 0 && left > 0) {
      size_t take = std::min<size_t>(left, 1 << 30);
      stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(next));
      stream.avail_in = static_cast<uInt>(take);
      next += take;
      left -= take;
    }
    stream.next_out = reinterpret_cast<Bytef *>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    status = inflate(&stream, Z_NO_FLUSH);
    size_t got = chunk.size() - stream.avail_out;
    if (static_cast<int64_t>(out.size() + got) > budget) {
      error = makeError("unpacks to more than the budget of " + llvm::Twine(budget) + " bytes");
      break;
    }
    out.append(chunk.begin(), chunk.begin() + got);
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0 && left == 0)
        break;
      if (inflateReset(&stream) != Z_OK) {
        error = makeError("is a damaged gzip file");
        break;
      }
      continue;
    }
    if (status == Z_BUF_ERROR && stream.avail_in == 0 && left == 0) {
      error = makeError("is a gzip file that ends early: it is truncated");
      break;
    }
    if (status != Z_OK) {
      error = makeError("is a damaged gzip file");
      break;
    }
    if (got == 0 && stream.avail_in == 0 && left == 0) {
      error = makeError("is a gzip file that ends early: it is truncated");
      break;
    }
  }
  inflateEnd(&stream);
  if (error)
    return std::move(error);
  return std::unique_ptr<llvm::MemoryBuffer>(
      std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(out), name, /*RequiresNullTerminator=*/false));
}
