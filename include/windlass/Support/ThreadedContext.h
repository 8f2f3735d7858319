// An MLIR context that several threads may use.
#ifndef WINDLASS_SUPPORT_THREADEDCONTEXT_H
#define WINDLASS_SUPPORT_THREADEDCONTEXT_H

#include "mlir/IR/MLIRContext.h"

namespace windlass {

/// Lets several threads use a context as long as this object lives. Only one thread may use the context when the object
/// is made and when it is destroyed. The tools' contexts serve one thread otherwise, and then take no locks.
class ThreadedContext {
public:
  explicit ThreadedContext(mlir::MLIRContext *context)
      : context(context), wasThreaded(context->isMultithreadingEnabled()) {
    if (!wasThreaded)
      context->enableMultithreading();
  }
  ~ThreadedContext() {
    if (!wasThreaded)
      context->disableMultithreading();
  }
  ThreadedContext(const ThreadedContext &) = delete;
  ThreadedContext &operator=(const ThreadedContext &) = delete;

private:
  mlir::MLIRContext *context;
  bool wasThreaded;
};

} // namespace windlass

#endif
