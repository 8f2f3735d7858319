#include "windlass/Support/OutputFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

std::string windlass::writeFile(llvm::StringRef path, llvm::StringRef text) {
  std::string temporary = path.str() + ".tmp";
  std::error_code error;
  {
    llvm::raw_fd_ostream out(temporary, error);
    if (!error) {
      out << text;
      out.close();
      error = out.error();
      out.clear_error();
    }
  }
  if (!error)
    error = llvm::sys::fs::rename(temporary, path);
  if (!error)
    return "";
  llvm::sys::fs::remove(temporary);
  return "cannot write '" + path.str() + "': " + error.message();
}
