#include "windlass/Commands/Console.h"

#include "windlass/Support/Printable.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

/// Returns the name that a location carries, for people; empty when it has none.
static std::string nameOf(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (std::string name = nameOf(part); !name.empty())
        return name;
  return "";
}

void Console::report(Code code, llvm::StringRef where, llvm::StringRef text) {
  if (!firstError)
    firstError = {code, oneLine(where), oneLine(text)};
  llvm::errs() << "windlass: error: " << (where.empty() ? "" : "at '" + oneLine(where) + "': ") << oneLine(text) << " ["
               << rt::diagnostic_code(code) << "]\n";
}

int Console::fail(Code code, llvm::StringRef text) {
  report(code, "", text);
  return exitCodeOf(code);
}

int Console::fail(const rt::status &status) { return fail(status.kind(), status.message()); }

void Console::say(const llvm::Twine &line) { llvm::errs() << "windlass: " << oneLine(line.str()) << "\n"; }

void Console::listenTo(MLIRContext &context, bool showsAll) {
  context.getDiagEngine().registerHandler([this, showsAll](Diagnostic &diagnostic) {
    std::string where = nameOf(diagnostic.getLocation());
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      report(getCode(diagnostic), where, diagnostic.str());
    else if (showsAll)
      say((where.empty() ? "" : "at '" + oneLine(where) + "': ") + oneLine(diagnostic.str()));
    return success();
  });
}

int Console::codeOf(LogicalResult result) const {
  if (succeeded(result))
    return kDone;
  return firstError ? exitCodeOf(firstError->code) : int(kInternal);
}

void Console::printErrorAsJson(int exitCode) const {
  if (!firstError)
    return;
  llvm::json::OStream json(llvm::outs(), 2);
  json.object([&] { writeJsonError(json, firstError->code, firstError->where, firstError->text, exitCode); });
  llvm::outs() << "\n";
}
