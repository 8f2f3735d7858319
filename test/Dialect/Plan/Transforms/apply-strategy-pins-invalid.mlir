// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 pins=fc7=whole" 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 pins=fc0" 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 pins=layer0.weight=whole" 2>&1 | FileCheck %s --check-prefix=PARAMETER
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 pins=fc0=master:[4,6]" 2>&1 | FileCheck %s --check-prefix=OPERATOR
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 strategy=megatron pins=fc0=n1:model" 2>&1 | FileCheck %s --check-prefix=FACTOR
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 strategy=megatron pins=fc0=n0:modle" 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 strategy=megatron pins=fc0=n0" 2>&1 | FileCheck %s --check-prefix=SPLIT
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 strategy=megatron pins=fc1=n0:model" 2>&1 | FileCheck %s --check-prefix=DIVIDE
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 pins=fc0=m0:data" 2>&1 | FileCheck %s --check-prefix=REPLICAS
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 strategy=megatron pins=fc0=n0:model,fc*=whole" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 strategy=megatron pins=relu0=[8,6]sum(model)" 2>&1 | FileCheck %s --check-prefix=PARTIAL
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 strategy=megatron pins=relu0=[8,6];[8]" 2>&1 | FileCheck %s --check-prefix=RESULTS
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 strategy=megatron pins=layer0.weight=master:[4,7]" 2>&1 | FileCheck %s --check-prefix=LAYOUT
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 strategy=megatron pins=layer0.weight=gradient:[4,6]max(model)" 2>&1 | FileCheck %s --check-prefix=GRADIENT
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 pins=relu0=[8,6]flat(data)" 2>&1 | FileCheck %s --check-prefix=FLATVALUE
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 pins=layer0.bias=compute:[6]flat(data)" 2>&1 | FileCheck %s --check-prefix=FLATCOPY
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 pins=layer0.bias=master:[6]flat(date)" 2>&1 | FileCheck %s --check-prefix=FLATAXIS
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 pins=layer0.bias=master:[6:data]flat(data)" 2>&1 | FileCheck %s --check-prefix=FLATTWICE
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 pins=layer0.bias=master:[6]flat(data)flat(data)" 2>&1 | FileCheck %s --check-prefix=FLATAGAIN
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 pins=norm=[]flat(data)" 2>&1 | FileCheck %s --check-prefix=FLATSCALAR
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2 pins=norm.1=flat:2*data" 2>&1 | FileCheck %s --check-prefix=FLATBLOCKS

// NOTHING: error: pin 'fc7=whole' matches nothing: no operator is called 'fc7'; the nearest is 'fc0'
// SHAPE: error: pin 'fc0' is not PATTERN=VALUE
// PARAMETER: error: pin 'layer0.weight=whole' matches nothing: 'layer0.weight' is a parameter, of which compute:[..], gradient:[..] or master:[..] is pinned
// OPERATOR: error: pin 'fc0=master:[4,6]' matches nothing: 'fc0' is an operator
// FACTOR: error: pin 'fc0=n1:model': operator 'fc0' has no factor 'n1'; the nearest is
// AXIS: error: pin 'fc0=n0:modle': operator 'fc0' is split over axis 'modle', which the mesh does not have; the nearest is 'model'
// SPLIT: error: pin 'fc0=n0' has 'n0', but splits are {{F}}ACTOR{{:}}AXIS
// DIVIDE: error: pin 'fc1=n0:model': operator 'fc1' has 3 along 'n0', which axis 'model' of 2 does not divide evenly
// REPLICAS: error: pin 'fc0=m0:data': operator 'fc0' works on other micro-batches in each replica, so axis 'data'
// TWICE: error: pin 'fc*=whole': operator 'fc0' is pinned otherwise by 'fc0=n0:model'
// PARTIAL: error: pin 'relu0=[8,6]sum(model)' cannot be met
// RESULTS: error: pin 'relu0=[8,6];[8]': operator 'relu0' has 1 results, fewer than the layouts
// LAYOUT: error: pin 'layer0.weight=master:[4,7]': parameter 'layer0.weight': layout
// GRADIENT: error: pin 'layer0.weight=gradient:[4,6]max(model)' cannot be met
// FLATVALUE: error: pin 'relu0=[8,6]flat(data)': operator 'relu0' makes a value that cannot be flat, as gradients and master copies can
// FLATCOPY: error: pin 'layer0.bias=compute:[6]flat(data)': parameter 'layer0.bias' can be flat only as a gradient and a master copy
// FLATAXIS: error: pin 'layer0.bias=master:[6]flat(date)': parameter 'layer0.bias': layout '[6]flat(date)' names axis 'date', which the mesh does not have; the nearest is 'data'
// FLATTWICE: error: pin 'layer0.bias=master:[6:data]flat(data)': parameter 'layer0.bias': layout '[6:data]flat(data)' names axis 'data' twice
// FLATAGAIN: error: {{.*}} layout '[6]flat(data)flat(data)' has flat(..) twice
// FLATSCALAR: error: {{.*}} layout '[]flat(data)' is flat, but a scalar has nothing to shard
// FLATBLOCKS: error: {{.*}} operator 'norm.1' has 6 along 'flat', which cannot be split in 2 blocks
