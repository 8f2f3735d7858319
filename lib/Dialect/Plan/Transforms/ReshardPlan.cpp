// Searches over the places of axes. A dimension is a row of digits, fine enough that an axis covers whole digits under
// both layouts. Every axis that the layouts treat differently is in its old place, in its new place, or on nothing, and
// a collective moves one axis, or several at once. With k such axes there are at most 3^k states; where k is large, all
// axes go to nothing and from there to their new places, without a search.
#include "FlatReshard.h"

#include "llvm/ADT/SmallSet.h"

#include <map>
#include <set>

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

namespace {

using Kind = ReshardStep::Kind;

/// The most axes for which all states are searched: meshes rarely have more, and a plan file may name any number.
constexpr unsigned kMaxSearchedAxes = 4;

/// The place that the rank's coordinate on an axis selects.
struct Place {
  enum class Kind { Nowhere, Unreduced, Digits };
  Kind kind = Kind::Nowhere;
  train::ReductionKind reduction = train::ReductionKind::sum;
  /// Digits [begin, end) of dimension `dim` in one of its two systems.
  unsigned dim = 0, system = 0, begin = 0, end = 0;

  bool operator==(const Place &other) const {
    if (kind != other.kind)
      return false;
    if (kind == Kind::Unreduced)
      return reduction == other.reduction;
    return kind == Kind::Nowhere ||
           (dim == other.dim && system == other.system && begin == other.begin && end == other.end);
  }
};

/// An axis of more than one member that a layout names.
struct Axis {
  StringAttr name;
  int64_t members;
  Place from, to;
};

/// The digits of a dimension. Where the two layouts cannot share one system, each has its own, and one empties before
/// the other is used.
struct Dimension {
  SmallVector<int64_t> systems[2];
  bool isShared = true;
};

/// The state of each axis: 0 in its old place, 1 on nothing, 2 in its new place.
using State = SmallVector<uint8_t, 4>;

class ReshardPlanner {
public:
  ReshardPlanner(ArrayRef<int64_t> shape, LayoutAttr from, LayoutAttr to, MeshAttr mesh)
      : shape(shape), from(from), to(to), mesh(mesh) {}

  llvm::Expected<ReshardPlan> run();

private:
  struct Move {
    State next;
    ReshardStep step;
    double sent;
    int64_t transient;
  };

  llvm::Error describe();
  void place(LayoutAttr layout, bool isTarget);
  const Place &placeOf(const State &state, unsigned axis) const {
    static const Place nowhere;
    return state[axis] == 0 ? axes[axis].from : state[axis] == 2 ? axes[axis].to : nowhere;
  }
  /// The sizes of the rank's digits, dimension by dimension, and the index at which each dimension begins.
  struct Local {
    SmallVector<int64_t> sizes;
    SmallVector<unsigned> starts;
    int64_t elements = 1;
    SmallVector<unsigned> systems;
  };
  Local getLocal(const State &state) const;
  bool isValid(const State &state) const;
  void addMoves(const State &state, std::vector<Move> &moves) const;
  void addReductions(const State &state, const Local &local, std::vector<Move> &moves) const;
  void addPermutations(const State &state, const Local &local, std::vector<Move> &moves) const;
  SmallVector<int64_t> getDestinations(const State &state, const State &next, ArrayRef<unsigned> members) const;
  std::optional<unsigned> indexOf(StringAttr name) const;
  void merge(ReshardPlan &plan) const;
  llvm::Expected<ReshardPlan> search(const State &start, const State &goal) const;
  llvm::Expected<ReshardPlan> gatherAndSlice(State state, const State &goal) const;

  ArrayRef<int64_t> shape;
  LayoutAttr from, to;
  MeshAttr mesh;
  SmallVector<Axis> axes;
  SmallVector<Dimension> dims;
  /// Whether moves of several axes at once are looked for, besides the reduction of all.
  bool isSearched = true;
};

/// Returns the sizes of digits that refine both, or none where they cut a dimension at borders that do not nest.
std::optional<SmallVector<int64_t>> refine(const Digits &a, const Digits &b) {
  std::set<int64_t> borders = {1};
  for (const Digits *digits : {&a, &b}) {
    int64_t border = 1;
    for (const Digit &digit : llvm::reverse(*digits))
      borders.insert(border *= digit.size);
  }
  SmallVector<int64_t> sizes;
  for (auto it = borders.begin(); std::next(it) != borders.end(); ++it) {
    if (*std::next(it) % *it != 0)
      return std::nullopt;
    sizes.insert(sizes.begin(), *std::next(it) / *it);
  }
  return sizes;
}

std::optional<unsigned> ReshardPlanner::indexOf(StringAttr name) const {
  for (auto [i, axis] : llvm::enumerate(axes))
    if (axis.name == name)
      return i;
  return std::nullopt;
}

/// Enters the places of the axes under a layout, in digits of the dimensions.
void ReshardPlanner::place(LayoutAttr layout, bool isTarget) {
  for (auto [d, dim] : llvm::enumerate(layout.getDims())) {
    unsigned system = isTarget && !dims[d].isShared ? 1 : 0;
    ArrayRef<int64_t> sizes = dims[d].systems[system];
    unsigned next = 0;
    std::optional<Digits> digits = getDigits(dim, mesh);
    for (const Digit &digit : *digits) {
      unsigned begin = next;
      for (int64_t size = 1; size < digit.size; ++next)
        size *= sizes[next];
      if (digit.axis)
        if (auto axis = indexOf(digit.axis))
          (isTarget ? axes[*axis].to : axes[*axis].from) = {
              Place::Kind::Digits, train::ReductionKind::sum, static_cast<unsigned>(d), system, begin, next};
    }
  }
  for (UnreducedAttr unreduced : layout.getUnreduced())
    if (auto axis = indexOf(unreduced.getAxis()))
      (isTarget ? axes[*axis].to : axes[*axis].from) = {Place::Kind::Unreduced, unreduced.getKind(), 0, 0, 0, 0};
}

llvm::Error fail(LayoutAttr from, LayoutAttr to, const Twine &text) {
  std::string layouts;
  llvm::raw_string_ostream(layouts) << "cannot reshard from " << from << " to " << to << ": ";
  return llvm::createStringError(Twine(layouts) + text);
}

llvm::Error ReshardPlanner::describe() {
  for (AxisAttr axis : mesh.getAxes())
    if (axis.getSize() > 1)
      axes.push_back({axis.getName(), axis.getSize(), {}, {}});
  for (auto [size, dimFrom, dimTo] : llvm::zip_equal(shape, from.getDims(), to.getDims())) {
    std::optional<Digits> digitsFrom = getDigits(dimFrom, mesh), digitsTo = getDigits(dimTo, mesh);
    if (!digitsFrom || !digitsTo)
      return fail(from, to, "an axis of the mesh " + Twine(mesh.getRanks()) + " ranks does not divide its factor");
    Dimension dim;
    if (auto shared = refine(*digitsFrom, *digitsTo)) {
      dim.systems[0] = std::move(*shared);
    } else {
      dim.isShared = false;
      for (auto [system, digits] : {std::pair(0, &*digitsFrom), std::pair(1, &*digitsTo)})
        for (const Digit &digit : *digits)
          dim.systems[system].push_back(digit.size);
    }
    dims.push_back(std::move(dim));
  }
  place(from, false);
  place(to, true);
  return llvm::Error::success();
}

bool ReshardPlanner::isValid(const State &state) const {
  SmallVector<SmallVector<bool>> taken;
  SmallVector<std::optional<unsigned>> system(dims.size());
  for (const Dimension &dim : dims)
    taken.emplace_back(std::max(dim.systems[0].size(), dim.systems[1].size()), false);
  for (unsigned a = 0; a < axes.size(); ++a) {
    const Place &place = placeOf(state, a);
    if (place.kind != Place::Kind::Digits)
      continue;
    if (system[place.dim].value_or(place.system) != place.system)
      return false;
    system[place.dim] = place.system;
    for (unsigned digit = place.begin; digit < place.end; ++digit) {
      if (taken[place.dim][digit])
        return false;
      taken[place.dim][digit] = true;
    }
  }
  return true;
}

ReshardPlanner::Local ReshardPlanner::getLocal(const State &state) const {
  Local local;
  local.systems.assign(dims.size(), 0);
  for (unsigned a = 0; a < axes.size(); ++a)
    if (placeOf(state, a).kind == Place::Kind::Digits)
      local.systems[placeOf(state, a).dim] = placeOf(state, a).system;
  for (auto [d, dim] : llvm::enumerate(dims)) {
    local.starts.push_back(local.sizes.size());
    llvm::append_range(local.sizes, dim.systems[local.systems[d]]);
  }
  for (unsigned a = 0; a < axes.size(); ++a) {
    const Place &place = placeOf(state, a);
    if (place.kind == Place::Kind::Digits)
      for (unsigned digit = place.begin; digit < place.end; ++digit)
        local.sizes[local.starts[place.dim] + digit] = 1;
  }
  for (int64_t size : local.sizes)
    local.elements *= size;
  return local;
}

int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

/// A run of digits of the flattened part.
struct Run {
  unsigned begin, end;
  int64_t size;
};

/// Returns the dims of the part with each run as one dim of its size, and the digits between runs as dims of their own;
/// `positions` receives the runs' dims. Runs must be in order.
SmallVector<int64_t, 5> groupDigits(ArrayRef<int64_t> sizes, ArrayRef<Run> runs, SmallVectorImpl<int64_t> &positions) {
  SmallVector<int64_t, 5> grouped;
  unsigned next = 0;
  for (const Run &run : runs) {
    grouped.push_back(product(sizes.slice(next, run.begin - next)));
    positions.push_back(grouped.size());
    grouped.push_back(run.size);
    next = run.end;
  }
  grouped.push_back(product(sizes.drop_front(next)));
  return grouped;
}

void ReshardPlanner::addReductions(const State &state, const Local &local, std::vector<Move> &moves) const {
  for (auto kind : {train::ReductionKind::sum, train::ReductionKind::max, train::ReductionKind::min}) {
    SmallVector<unsigned> partial;
    for (unsigned a = 0; a < axes.size(); ++a)
      if (state[a] == 0 && axes[a].from.kind == Place::Kind::Unreduced && axes[a].from.reduction == kind &&
          !(axes[a].to == axes[a].from))
        partial.push_back(a);
    // Any set of axes may be reduced at once.
    if (partial.empty())
      continue;
    unsigned all = isSearched ? (1u << partial.size()) - 1 : 1;
    for (unsigned set = 1; set <= all; ++set) {
      Move move{state, {Kind::AllReduce, {}, 1, {}, -1, -1, kind, {}}, 0, 0};
      for (auto [i, a] : llvm::enumerate(partial))
        if (!isSearched || (set >> i & 1)) {
          move.next[a] = axes[a].to.kind == Place::Kind::Nowhere ? 2 : 1;
          move.step.axes.push_back(axes[a].name);
          move.step.members *= axes[a].members;
        }
      move.step.shape.assign({local.elements});
      move.sent = 2.0 * (move.step.members - 1) / move.step.members * local.elements;
      moves.push_back(std::move(move));
    }
  }
}

/// Returns the member to which each member sends, among members that differ on the axes of `set`: a rank that holds
/// digits under `next` receives them from one that holds them under `state`.
SmallVector<int64_t> ReshardPlanner::getDestinations(const State &state, const State &next,
                                                     ArrayRef<unsigned> set) const {
  int64_t members = 1;
  for (unsigned a : set)
    members *= axes[a].members;
  // The digits that a member holds: the values of all digits that the axes of the set are on.
  using Key = std::map<std::pair<unsigned, unsigned>, int64_t>;
  auto keyOf = [&](const State &at, int64_t member) {
    Key key;
    for (unsigned a : llvm::reverse(set)) {
      int64_t coordinate = member % axes[a].members;
      member /= axes[a].members;
      const Place &place = placeOf(at, a);
      if (place.kind != Place::Kind::Digits)
        continue;
      for (unsigned digit = place.end; digit-- > place.begin;) {
        int64_t size = dims[place.dim].systems[place.system][digit];
        key[{place.dim, digit}] = coordinate % size;
        coordinate /= size;
      }
    }
    return key;
  };
  std::map<Key, SmallVector<int64_t>> holders;
  for (int64_t member = 0; member < members; ++member)
    holders[keyOf(state, member)].push_back(member);
  // Every part is held and wanted equally often. A member that wants the part that it holds keeps it.
  SmallVector<int64_t> destinations(members, -1);
  SmallVector<int64_t> others;
  for (int64_t member = 0; member < members; ++member) {
    if (keyOf(state, member) == keyOf(next, member))
      destinations[member] = member;
    else
      others.push_back(member);
  }
  for (int64_t member : others)
    for (int64_t holder : holders[keyOf(next, member)])
      if (destinations[holder] < 0) {
        destinations[holder] = member;
        break;
      }
  return destinations;
}

void ReshardPlanner::addPermutations(const State &state, const Local &local, std::vector<Move> &moves) const {
  SmallVector<unsigned> candidates;
  for (unsigned a = 0; a < axes.size(); ++a)
    if (state[a] != 2 && placeOf(state, a).kind != Place::Kind::Unreduced && !(placeOf(state, a) == axes[a].to) &&
        axes[a].to.kind != Place::Kind::Unreduced)
      candidates.push_back(a);
  auto occupied = [&](const State &at, ArrayRef<unsigned> set) {
    std::set<std::tuple<unsigned, unsigned, unsigned>> digits;
    for (unsigned a : set)
      if (const Place &place = placeOf(at, a); place.kind == Place::Kind::Digits)
        for (unsigned digit = place.begin; digit < place.end; ++digit)
          digits.insert({place.dim, place.system, digit});
    return digits;
  };
  for (unsigned bits = 1; bits < (1u << candidates.size()); ++bits) {
    SmallVector<unsigned> set;
    for (auto [i, a] : llvm::enumerate(candidates))
      if (bits >> i & 1)
        set.push_back(a);
    if (set.size() < 2)
      continue;
    Move move{state, {Kind::Permute, {}, 1, {}, -1, -1, train::ReductionKind::sum, {}}, 0, local.elements};
    for (unsigned a : set) {
      move.next[a] = 2;
      move.step.axes.push_back(axes[a].name);
      move.step.members *= axes[a].members;
    }
    if (occupied(state, set).empty() || occupied(state, set) != occupied(move.next, set) || !isValid(move.next))
      continue;
    move.step.destinations = getDestinations(state, move.next, set);
    if (llvm::is_contained(move.step.destinations, -1))
      continue;
    move.step.shape.assign({local.elements});
    move.sent = local.elements;
    moves.push_back(std::move(move));
  }
}

void ReshardPlanner::addMoves(const State &state, std::vector<Move> &moves) const {
  Local local = getLocal(state);
  addReductions(state, local, moves);
  if (isSearched)
    addPermutations(state, local, moves);
  auto runOf = [&](const Place &place, const Local &at, bool isWhole) {
    unsigned start = at.starts[place.dim];
    ArrayRef<int64_t> digits = dims[place.dim].systems[place.system];
    int64_t size = isWhole ? product(digits.slice(place.begin, place.end - place.begin)) : 1;
    return Run{start + place.begin, start + place.end, size};
  };
  for (unsigned a = 0; a < axes.size(); ++a) {
    if (state[a] == 2 || axes[a].from == axes[a].to)
      continue;
    const Place &now = placeOf(state, a);
    int64_t members = axes[a].members;
    auto tryMove = [&](Kind kind, uint8_t what, ArrayRef<Run> runs, double sent, int64_t transient, int cut, int join) {
      Move move{state, {kind, {axes[a].name}, members, {}, -1, -1, train::ReductionKind::sum, {}}, sent, transient};
      move.next[a] = what;
      if (!isValid(move.next))
        return;
      SmallVector<int64_t> positions;
      move.step.shape = groupDigits(local.sizes, runs, positions);
      if (cut >= 0)
        move.step.cut = positions[cut];
      if (join >= 0)
        move.step.join = positions[join];
      moves.push_back(std::move(move));
    };
    bool isTarget = axes[a].to.kind == Place::Kind::Digits;
    // The move sees the part in the digits of the target's system: a dimension that changes its system is whole.
    auto inTarget = [&](Kind kind, double sent, int64_t transient) {
      State next = state;
      next[a] = 2;
      if (!isValid(next))
        return;
      Local after = getLocal(next);
      Run run = runOf(axes[a].to, after, true);
      // All digits of the part before the step: the digits after it, with the run whole.
      SmallVector<int64_t> sizes = after.sizes;
      for (unsigned digit = axes[a].to.begin; digit < axes[a].to.end; ++digit)
        sizes[after.starts[axes[a].to.dim] + digit] = dims[axes[a].to.dim].systems[axes[a].to.system][digit];
      Move move{next, {kind, {axes[a].name}, members, {}, -1, -1, train::ReductionKind::sum, {}}, sent, transient};
      SmallVector<int64_t> positions;
      move.step.shape = groupDigits(sizes, {run}, positions);
      move.step.cut = positions[0];
      moves.push_back(std::move(move));
    };
    switch (now.kind) {
    case Place::Kind::Unreduced:
      if (isTarget && now.reduction == train::ReductionKind::sum)
        inTarget(Kind::ReduceScatter, double(members - 1) / members * local.elements, local.elements / members);
      break;
    case Place::Kind::Nowhere:
      if (isTarget)
        inTarget(Kind::Slice, 0, local.elements / members);
      break;
    case Place::Kind::Digits: {
      Run source = runOf(now, local, false);
      tryMove(Kind::AllGather, axes[a].to.kind == Place::Kind::Nowhere ? 2 : 1, {source},
              double(members - 1) * local.elements, local.elements * members, -1, 0);
      // An exchange names both runs at once, so both must be digits of one view.
      if (!isTarget || (axes[a].to.dim == now.dim && axes[a].to.system != now.system) ||
          local.systems[axes[a].to.dim] != axes[a].to.system)
        break;
      Run target = runOf(axes[a].to, local, true);
      if (target.begin < source.end && source.begin < target.end)
        break;
      bool sourceFirst = source.begin < target.begin;
      SmallVector<Run> runs = sourceFirst ? SmallVector<Run>{source, target} : SmallVector<Run>{target, source};
      tryMove(Kind::AllToAll, 2, runs, double(members - 1) / members * local.elements, local.elements,
              sourceFirst ? 1 : 0, sourceFirst ? 0 : 1);
      break;
    }
    }
  }
}

/// Joins neighbouring steps of one kind whose axes are neighbours in one dim: one collective instead of two.
void ReshardPlanner::merge(ReshardPlan &plan) const {
  for (size_t i = 0; i + 1 < plan.steps.size();) {
    ReshardStep &first = plan.steps[i], &second = plan.steps[i + 1];
    bool merged = false;
    // The view of both steps: [before, run, after]; a gather sees runs of size 1, a cut whole ones.
    if (first.kind == second.kind && first.shape.size() == 3 && second.shape.size() == 3) {
      if (first.kind == Kind::AllGather) {
        // The minor axis comes first, then the major one, directly before it.
        int64_t inner = first.shape[2] * first.members;
        if (second.shape[2] == inner) {
          second.axes.append(first.axes.begin(), first.axes.end());
          second.members *= first.members;
          second.shape = {second.shape[0], 1, first.shape[2]};
          merged = true;
        } else if (second.shape[0] == first.shape[0] * first.members && second.shape[2] == first.shape[2]) {
          // The major axis comes first, then the minor one, directly behind it.
          first.axes.append(second.axes.begin(), second.axes.end());
          second.axes = first.axes;
          second.members *= first.members;
          second.shape = {first.shape[0], 1, first.shape[2]};
          merged = true;
        }
      } else if (first.kind == Kind::ReduceScatter || first.kind == Kind::Slice) {
        if (second.shape[0] == first.shape[0] && second.shape[1] * second.shape[2] == first.shape[2]) {
          // The major axis comes first, then the minor one.
          first.axes.append(second.axes.begin(), second.axes.end());
          second.axes = first.axes;
          second.members *= first.members;
          second.shape = {first.shape[0], first.shape[1] * second.shape[1], second.shape[2]};
          merged = true;
        } else if (second.shape[2] == first.shape[2] && second.shape[0] * second.shape[1] == first.shape[0]) {
          second.axes.append(first.axes.begin(), first.axes.end());
          second.members *= first.members;
          second.shape = {second.shape[0], second.shape[1] * first.shape[1], first.shape[2]};
          merged = true;
        }
      }
    }
    if (merged)
      plan.steps.erase(plan.steps.begin() + i);
    else
      ++i;
  }
}

llvm::Expected<ReshardPlan> ReshardPlanner::run() {
  if (llvm::Error error = describe())
    return std::move(error);
  State start, goal;
  for (const Axis &axis : axes) {
    start.push_back(axis.from == axis.to ? 2 : 0);
    goal.push_back(2);
  }
  isSearched = llvm::count(start, 0) <= kMaxSearchedAxes;
  llvm::Expected<ReshardPlan> plan = isSearched ? search(start, goal) : gatherAndSlice(start, goal);
  if (plan)
    merge(*plan);
  return plan;
}

/// Plans reductions first, then gathers, then slices: every reshard can be composed of these.
llvm::Expected<ReshardPlan> ReshardPlanner::gatherAndSlice(State state, const State &goal) const {
  ReshardPlan plan;
  while (state != goal) {
    std::vector<Move> moves;
    addMoves(state, moves);
    auto next = moves.end();
    for (Kind kind : {Kind::AllReduce, Kind::AllGather, Kind::Slice})
      if (next == moves.end())
        next = llvm::find_if(moves, [&](const Move &move) { return move.step.kind == kind; });
    if (next == moves.end())
      return llvm::createStringError("no sequence of collectives leads from one layout to the other");
    plan.sentElements += next->sent;
    plan.transientElements = std::max(plan.transientElements, next->transient);
    state = next->next;
    plan.steps.push_back(std::move(next->step));
  }
  return plan;
}

llvm::Expected<ReshardPlan> ReshardPlanner::search(const State &start, const State &goal) const {
  // The order is: least sent, then fewest steps, then least memory; equal plans in the order in which they were found.
  using Cost = std::tuple<double, int64_t, int64_t>;
  struct Reached {
    Cost cost;
    State before;
    ReshardStep step;
    bool isDone = false;
  };
  std::map<State, Reached> reached;
  std::set<std::tuple<Cost, int64_t, State>> queue;
  int64_t found = 0;
  reached[start] = {Cost(0, 0, 0), {}, {Kind::Slice, {}, 1, {}, -1, -1, train::ReductionKind::sum, {}}};
  queue.insert({Cost(0, 0, 0), found++, start});
  while (!queue.empty()) {
    auto [cost, order, state] = *queue.begin();
    queue.erase(queue.begin());
    Reached &entry = reached[state];
    if (entry.isDone)
      continue;
    entry.isDone = true;
    if (state == goal)
      break;
    std::vector<Move> moves;
    addMoves(state, moves);
    for (Move &move : moves) {
      auto [sent, steps, transient] = cost;
      Cost next(sent + move.sent, steps + 1, std::max(transient, move.transient));
      auto it = reached.find(move.next);
      if (it != reached.end() && (it->second.isDone || it->second.cost <= next))
        continue;
      reached[move.next] = {next, state, std::move(move.step)};
      queue.insert({next, found++, move.next});
    }
  }
  auto it = reached.find(goal);
  if (it == reached.end())
    return llvm::createStringError("no sequence of collectives leads from one layout to the other");
  ReshardPlan plan;
  plan.sentElements = std::get<0>(it->second.cost);
  plan.transientElements = std::get<2>(it->second.cost);
  for (State state = goal; state != start; state = it->second.before) {
    it = reached.find(state);
    plan.steps.insert(plan.steps.begin(), it->second.step);
  }
  return plan;
}

} // namespace

llvm::Expected<ReshardPlan> plan::planReshard(ArrayRef<int64_t> shape, LayoutAttr from, LayoutAttr to, MeshAttr mesh) {
  if (from.getMemory() != to.getMemory())
    return fail(from, to, "a reshard stays in one memory");
  for (UnreducedAttr unreduced : to.getUnreduced())
    if (mesh.sizeOf(unreduced.getAxis().getValue()) > 1 && !llvm::is_contained(from.getUnreduced(), unreduced))
      return fail(from, to,
                  "a value that is not partial over axis '" + unreduced.getAxis().getValue() + "' cannot become so");
  if (from.getFlatParts(mesh) > 1 || to.getFlatParts(mesh) > 1)
    return planFlatReshard(shape, from, to, mesh);
  return ReshardPlanner(shape, from, to, mesh).run();
}

GroupShape plan::getGroup(MeshAttr mesh, ArrayRef<StringAttr> axes) {
  GroupShape group;
  int64_t stride = 1;
  // The last axis varies fastest in the numbers of ranks.
  for (AxisAttr axis : llvm::reverse(mesh.getAxes())) {
    if (llvm::is_contained(axes, axis.getName()) && axis.getSize() > 1)
      group.axes.push_back({stride, axis.getSize()});
    stride *= axis.getSize();
  }
  return group;
}
