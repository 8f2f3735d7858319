#include "windlass/Dialect/Train/IR/TrainInterfaces.h"

#include "windlass/Dialect/Train/IR/TrainInterfaces.cpp.inc"
