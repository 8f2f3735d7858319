// For programs without cuDNN (cudnn.cpp).
#include "attention_library.h"

namespace windlass::rt::cuda {

status open_attention_library(stream &, std::unique_ptr<attention_library> &) {
  return bad_input("the program was built without the headers of cuDNN and of its frontend");
}

} // namespace windlass::rt::cuda
