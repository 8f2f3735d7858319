// A layer with groups: the best partition of groups into nodes, and the placements of the nodes as one.
#ifndef WINDLASS_LIB_EXPERTS_PLACELAYER_H
#define WINDLASS_LIB_EXPERTS_PLACELAYER_H

#include "Domains.h"

#include "windlass/Experts/PlaceExperts.h"

namespace windlass::experts {

/// Places the experts of a layer with groups, which is `whole` without them.
LayerAnswer placeGroups(Domains &domains, const FlatProblem &whole);

/// Places the experts of a layer without groups that matter.
LayerAnswer placeFlat(const FlatProblem &problem, SearchLimits &limits);

/// Returns the placement of a layer whose nodes are placed so, each by the numbers of experts in its own problem.
Placement joinNodes(const Domains &domains, const Partition &partition, const std::vector<Placement> &nodes);

/// Sets the load of an answer's placement, and the bound to it where the two are equal but for rounding.
void finish(const FlatProblem &whole, LayerAnswer &answer);

} // namespace windlass::experts

#endif
