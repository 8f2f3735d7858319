#include "windlass/Target/Cpp/MeasuringProject.h"

#include "ProjectParts.h"

#include "windlass/Target/Cpp/CppBuilder.h"
#include "windlass/Target/Cpp/ProgramTables.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::cpp;

static constexpr char kMain[] = R"(// Starts the measuring program.
#include "windlass/rt/measure.h"

namespace windlass_program {
extern const windlass::rt::measuring commands;
}

int main(int argc, char **argv) { return windlass::rt::run_measuring(windlass_program::commands, argc, argv); }
)";

/// Writes the table of the commands, which goes behind their functions.
static std::string writeTable(llvm::ArrayRef<MeasuredCommand> commands, const MeasuringOptions &options) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "\nnamespace windlass_program {\n\n";
  for (auto [i, command] : llvm::enumerate(commands)) {
    out << "static constexpr measured_operand operands_" << i << "[] = {";
    for (const MeasuredCommand::Operand &operand : command.operands)
      out << "\n    {" << elementTypeText(operand.type) << ", " << operand.elements << ", " << operand.limit << ", "
          << (operand.isRead ? "true" : "false") << "},";
    out << "\n};\n";
  }
  out << "\nstatic constexpr measured_command table[] = {";
  for (auto [i, command] : llvm::enumerate(commands))
    out << "\n    {" << (command.adds ? "true" : "false") << ", {operands_" << i << ", " << command.operands.size()
        << "}, block_" << i << ", " << quoted(command.key) << ", " << quoted(command.family) << ", "
        << real(command.flops).text << ", " << real(command.bytes).text << ", " << (command.isNarrow ? "true" : "false")
        << "},";
  out << "\n};\n\nextern const measuring commands;\nconst measuring commands = {" << options.ranks << ", "
      << (options.measuresCollectives ? "true" : "false") << ", " << options.arenaBytes << ", " << options.scratchBytes
      << ", {table, " << commands.size() << "}, " << quoted(options.precision) << ", "
      << (options.cluster.empty() ? "nullptr" : quoted(options.cluster)) << "};\n\n} // namespace windlass_program\n";
  return text;
}

FailureOr<ProjectFiles> cpp::makeMeasuringProject(ModuleOp module, llvm::ArrayRef<MeasuredCommand> commands,
                                                  const MeasuringOptions &options) {
  ProjectFiles files;
  if (failed(addSources(module, files)))
    return failure();
  files["src/commands.cpp"] += writeTable(commands, options);
  files["src/main.cpp"] = kMain;
  bool hasAttention = llvm::any_of(commands, [](const MeasuredCommand &each) { return each.isAttention; });
  files["CMakeLists.txt"] = cmakeText("measure", "src/main.cpp", "src/commands.cpp", options.backend, hasAttention);
  files["run.sh"] = runScript(options.ranks, "measure");
  addRuntime(files);
  return files;
}
