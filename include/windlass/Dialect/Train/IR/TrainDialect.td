// The `train` dialect: typed operators of a training graph, forward and backward.
#ifndef WINDLASS_TRAIN_DIALECT_TD
#define WINDLASS_TRAIN_DIALECT_TD

include "mlir/IR/OpBase.td"

def TrainDialect : Dialect {
  let name = "train";
  let cppNamespace = "::windlass::train";
  let summary = "operators of training graphs with static shapes";
  let description = [{
    Levels L1 and L2. Every value is a ranked tensor of static shape. At L1 a module holds one `func.func @loss`; at L2
    the functions `@init`, `@microbatch`, `@update` and `@evaluate`. Parameters are module symbols (`train.parameter`)
    that functions read and write by name.

    Attributes of functions and their arguments and results, and of the module, are documented in
    `TrainConventions.h`. Each operator's iteration dimensions (factors), cost, gradient and precision class come from
    the interfaces of `TrainInterfaces.td`, so that no later part needs to know single operators.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

class Train_Op<string mnemonic, list<Trait> traits = []> : Op<TrainDialect, mnemonic, traits>;

#endif
