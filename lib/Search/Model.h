// A problem laid out for the loops of the search; it does not change.
#ifndef WINDLASS_LIB_SEARCH_MODEL_H
#define WINDLASS_LIB_SEARCH_MODEL_H

#include "Classes.h"
#include "windlass/Search/Problem.h"

namespace windlass::search {

/// One end of an edge, seen from its owner.
struct Arc {
  int32_t other;
  int32_t edge;
  /// The table [own label][label of the other], in rows of the other's stride; padded with kForbidden. Null where the
  /// model keeps classes only, and has them.
  const double *table;
  /// The table [label of the other][own label], or null.
  const double *transposed;
  /// The classes of `table`; null where it hardly repeats rows and columns.
  const Classes *classes;
  /// The places of the message from the other node (over own labels) and of the message to it (over its labels).
  size_t in, out;
};

/// What a model keeps of tables that have classes: messages need no more than those, which take a small part of the
/// memory and of the time to lay them out; solutions need the costs of labels.
enum class TablesFor { solutions, messages };

/// The nodes, edges and pieces of a problem, numbered as there.
struct Model {
  explicit Model(const Problem &problem, TablesFor purpose = TablesFor::solutions);
  Model(const Model &) = delete;

  int32_t nodes() const { return static_cast<int32_t>(labels.size()); }
  /// The arcs of a node, those to earlier nodes first.
  const Arc *arcsBegin(int32_t i) const { return arcs.data() + arcBegin[i]; }
  const Arc *arcsMiddle(int32_t i) const { return arcs.data() + arcMiddle[i]; }
  const Arc *arcsEnd(int32_t i) const { return arcs.data() + arcBegin[i + 1]; }
  /// Sets out[y] = min over x of a[x] + arc.table[x][y], for an arc of node i. `room` is scratch for `messageRoom()`
  /// numbers.
  void send(double *out, const double *a, const Arc &arc, int32_t i, double *room) const {
    if (arc.classes)
      minPlus(out, a, *arc.classes, room);
    else
      minPlus(out, a, arc.table, labels[i], stride[arc.other]);
  }
  size_t messageRoom() const { return 2 * static_cast<size_t>(padded(mostLabels + 1)); }

  const Problem &problem;
  std::vector<int32_t> labels, stride;
  /// The place where each node's labels begin in arrays over all labels.
  std::vector<size_t> offset;
  size_t totalLabels = 0, totalMessages = 0;
  int32_t mostLabels = 0;
  Doubles cost; // over all labels; padded with kForbidden
  /// A piece: its rows as in the problem, and the places of its usages, as doubles padded with 0 and as integers.
  struct ModelPiece {
    int32_t begin, end;
    size_t usage;
  };
  std::vector<ModelPiece> pieces;
  std::vector<int32_t> pieceBegin;
  Doubles usage;
  std::vector<int64_t> exactUsage;
  int32_t memoryRows = 0, rows = 0;
  /// The unit of the prices of each row: its capacity, or a part of the most that it may take where that is larger; for
  /// a row of a stream, the most that it may take.
  std::vector<double> scale;
  /// The operations of one pass over all edges.
  int64_t passWork = 0;

private:
  /// Adds the table of an edge in both orientations.
  void addTable(const Edge &edge, TablesFor purpose);

  std::vector<Arc> arcs;
  std::vector<int32_t> arcBegin, arcMiddle;
  std::vector<Doubles> tables;
  std::vector<std::optional<Classes>> classes; // of each of `tables`
};

} // namespace windlass::search

#endif
