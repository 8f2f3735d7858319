// The reader of plan files, and of the layouts that they hold as text; what differs from an empty plan.
#include "windlass/Dialect/Plan/PlanDiff.h"

#include "mlir/IR/BuiltinTypes.h"

#include <cstdint>

using namespace windlass;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  auto plan = plan::readPlanFile(llvm::StringRef(reinterpret_cast<const char *>(data), size));
  if (!plan) {
    llvm::consumeError(plan.takeError());
    return 0;
  }
  (void)plan::diffPlans(*plan, plan::PlanFile());
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<plan::PlanDialect>();
  llvm::SmallVector<plan::AxisAttr> axes;
  for (const plan::MeshAxis &axis : plan->mesh)
    axes.push_back(plan::AxisAttr::get(&context, mlir::StringAttr::get(&context, axis.name), axis.size, axis.role));
  auto mesh = plan::MeshAttr::get(&context, axes);
  auto read = [&](const std::string &text) {
    // Most layouts are of another rank or size than most types here; what they say is read all the same.
    for (const std::vector<int64_t> &shape : std::vector<std::vector<int64_t>>{{}, {8}, {2, 4}, {8, 4}, {2, 4, 8}}) {
      auto layout = plan::parseLayout(text, mlir::RankedTensorType::get(shape, mlir::Float32Type::get(&context)), mesh);
      if (!layout)
        llvm::consumeError(layout.takeError());
    }
  };
  for (const auto &[name, function] : plan->functions) {
    for (const auto *texts : {&function.arguments, &function.results})
      for (const std::string &text : *texts)
        read(text);
    for (const auto &[id, op] : function.operators)
      for (const std::string &text : op.layouts)
        read(text);
  }
  for (const auto &[name, parameter] : plan->parameters)
    for (const std::string *text : {&parameter.compute, &parameter.master, &parameter.gradient})
      read(*text);
  return 0;
}
