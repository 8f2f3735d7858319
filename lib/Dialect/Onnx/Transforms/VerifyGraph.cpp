//===- VerifyGraph.cpp - what holds at level L0 ---------------------------===//

#include "windlass/Dialect/Onnx/Transforms/Passes.h"

#include "windlass/Dialect/Onnx/IR/OnnxOps.h"
#include "windlass/Support/Printable.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace windlass::onnx {
#define GEN_PASS_DEF_ONNXVERIFYGRAPH
#include "windlass/Dialect/Onnx/Transforms/Passes.h.inc"
} // namespace windlass::onnx

namespace {

using namespace windlass::onnx;

struct OnnxVerifyGraphPass : windlass::onnx::impl::OnnxVerifyGraphBase<OnnxVerifyGraphPass> {
  void runOnOperation() override {
    int64_t graphs = 0;
    for (Operation &op : *getOperation().getBody()) {
      if (!isa<GraphOp>(op))
        fail(op, "stands beside the ONNX graph; a module of this level holds nothing else");
      else
        ++graphs;
    }
    if (graphs != 1)
      fail(*getOperation(), "holds " + llvm::Twine(graphs) + " ONNX graphs; it must hold one");
    for (auto graph : getOperation().getOps<GraphOp>())
      verify(graph);
    if (hasFailed)
      signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  void fail(Operation &op, const llvm::Twine &message) {
    op.emitOpError() << message;
    hasFailed = true;
  }

  void verify(GraphOp graph) {
    llvm::StringMap<bool> names;
    bool sawNode = false;
    for (Operation &op : graph.getBody().front()) {
      if (!isa<OnnxDialect>(op.getDialect())) {
        fail(op, "is not an ONNX operator");
        continue;
      }
      if (auto initializer = dyn_cast<InitializerOp>(op)) {
        if (sawNode)
          fail(op, "stands behind a node; initializers come first");
        llvm::StringRef name = initializer.getInitializerName();
        if (!names.try_emplace(name, true).second)
          fail(op, "is the second of the name " + windlass::printable(name));
      }
      if (!isa<NodeOp>(op))
        continue;
      sawNode = true;
      if (!isa<NameLoc>(op.getLoc()))
        fail(op, "has no name as its location");
    }
  }

  bool hasFailed = false;
};

} // namespace
