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

std::string windlass::finishOutput() {
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  // LLVM ends a program whose streams have failed with a report of a crash.
  llvm::outs().clear_error();
  llvm::errs().clear_error();
  return !error || error == std::errc::broken_pipe ? "" : "cannot write to standard output: " + error.message();
}
