#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

#include "windlass/Dialect/Sched/IR/SchedDialect.cpp.inc"
#include "windlass/Dialect/Sched/IR/SchedEnums.cpp.inc"

static ParseResult parseKernelName(AsmParser &parser, KernelKind &kernel) {
  StringRef name;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<KernelKind> kind = symbolizeKernelKind(name);
  if (!kind)
    return parser.emitError(loc, "there is no kernel '") << name << "'";
  kernel = *kind;
  return success();
}

static void printKernelName(AsmPrinter &printer, KernelKind kernel) { printer << stringifyKernelKind(kernel); }

static constexpr llvm::StringRef kRepeatKind = "repeat";

static ParseResult parseActionKind(AsmParser &parser, std::optional<schedule::ActionKind> &kind) {
  StringRef name;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  kind = schedule::findKind(name);
  if (!kind && name != kRepeatKind)
    return parser.emitError(loc, "there is no action '") << name << "'";
  return success();
}

static void printActionKind(AsmPrinter &printer, std::optional<schedule::ActionKind> kind) {
  printer << (kind ? schedule::getName(*kind) : kRepeatKind);
}

// A launch names its kernel without the brackets of the attribute.
static ParseResult parseLaunchedKernel(OpAsmParser &parser, KernelAttr &attribute) {
  KernelKind kernel;
  if (failed(parseKernelName(parser, kernel)))
    return failure();
  attribute = KernelAttr::get(parser.getContext(), kernel);
  return success();
}

static void printLaunchedKernel(OpAsmPrinter &printer, Operation *, KernelAttr attribute) {
  printKernelName(printer, attribute.getValue());
}

#define GET_ATTRDEF_CLASSES
#include "windlass/Dialect/Sched/IR/SchedAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "windlass/Dialect/Sched/IR/SchedOps.cpp.inc"

void SchedDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "windlass/Dialect/Sched/IR/SchedAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "windlass/Dialect/Sched/IR/SchedOps.cpp.inc"
      >();
}

LogicalResult SchedDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kPlacementAttr && !llvm::isa<PlacementAttr>(attribute.getValue()))
    return op->emitOpError("has a ") << kPlacementAttr << " that is no #sched.placement";
  if (attribute.getName() != kStepAttr)
    return success();
  auto step = llvm::dyn_cast<StepAttr>(attribute.getValue());
  if (!step)
    return op->emitOpError("has a ") << kStepAttr << " that is no #sched.step";
  if (!llvm::isa<func::FuncOp>(op))
    return op->emitOpError("is no function, but has ") << kStepAttr;
  if (op->hasAttr(kScalarFunctionAttr))
    return op->emitOpError("has both ") << kStepAttr << " and " << kScalarFunctionAttr;
  if (step.getChunk() < 0)
    return op->emitOpError("is of chunk ") << step.getChunk() << ", but chunks count from 0";
  return success();
}
