// Cases of Aceso's form: a model's operators in order, what they cost by the way they run, and the cluster.
#ifndef WINDLASS_TOOLS_WINDLASS_PEERS_ACESOCASE_H
#define WINDLASS_TOOLS_WINDLASS_PEERS_ACESOCASE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace windlass::peers {

/// A measured operator: times in microseconds, sizes in MB of one device.
struct AcesoRow {
  double forward, backward, input, output, weights, activations, forwardReserved, backwardReserved;
};

/// How an operator runs on the GPUs of its stage, whose number is the product of both degrees.
struct AcesoWay {
  int64_t tensor, data, algorithm;
  bool operator==(const AcesoWay &other) const {
    return tensor == other.tensor && data == other.data && algorithm == other.algorithm;
  }
};

struct AcesoCase {
  std::vector<std::string> names;
  /// The operators of the model in order, as indices of names.
  std::vector<size_t> order;
  std::vector<int64_t> microBatches;
  int64_t globalBatch, gpusPerNode, gpus, mostTensor;
  double limit;
  /// The copies of the weights that a device holds: weights, gradients, optimizer state and perhaps a master copy.
  double copies;
  /// By name, samples of a replica, tensor-parallel degree and algorithm.
  std::map<std::tuple<size_t, int64_t, int64_t, int64_t>, AcesoRow> rows;
  int64_t algorithms;
  /// The milliseconds of a collective by its name, the number of GPUs and MB. Where there are none, changes of layout
  /// cost nothing.
  std::map<std::tuple<std::string, int64_t, int64_t>, double> collectives;
  /// GB/s inside a node and between nodes, by the logarithm of the size.
  std::array<std::vector<double>, 2> links;

  /// Returns the row of an operator, or null where it was not measured.
  const AcesoRow *find(size_t name, int64_t microBatch, const AcesoWay &way) const;
  /// Returns the microseconds to hand `size` MB to another stage.
  double getTransfer(double size, bool isBetweenNodes) const;
  /// Returns the microseconds, of both passes, to bring the output of an operator into the layout that the next one
  /// takes, whose input has `size` MB. The number is very large where that was not measured.
  double getReshard(size_t from, const AcesoWay &fromWay, size_t to, const AcesoWay &toWay, double size) const;
  /// Returns whether a layer begins with the operator. Recomputation within a layer keeps the layer's input.
  bool beginsLayer(size_t name) const;
  /// Returns the part of its activations that an operator keeps; some share them with a neighbour.
  double getKeptShare(size_t name) const;
};

/// Reads a case from a folder. Fails where a file is missing or malformed.
llvm::Expected<AcesoCase> readAcesoCase(llvm::StringRef folder);

} // namespace windlass::peers

#endif
