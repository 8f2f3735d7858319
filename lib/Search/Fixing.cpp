#include "Fixing.h"

#include <algorithm>
#include <cmath>

using namespace windlass::search;

void Incumbent::offer(const Problem &problem, const Solution &solution) {
  Evaluation value = evaluate(problem, solution);
  if (!value.isFeasible() || value.cost >= cost)
    return;
  cost = value.cost;
  labels = solution;
}

namespace {

/// The least that the allowed labels of each node take of the rows, and the room that it leaves.
class Room {
public:
  explicit Room(const Dual &dual) : m(dual.model()), least(m.pieces.size()) {
    std::vector<int64_t> free(m.rows + 1);
    for (int32_t i = 0; i < m.nodes(); ++i)
      for (int32_t p = m.pieceBegin[i]; p < m.pieceBegin[i + 1]; ++p) {
        const Model::ModelPiece &piece = m.pieces[p];
        int64_t value = INT64_MAX;
        for (int32_t x = 0; x < m.labels[i]; ++x)
          if (!dual.isBanned(i, x))
            value = std::min(value, m.exactUsage[piece.usage + x]);
        least[p] = value == INT64_MAX ? 0 : value;
        free[piece.begin] -= least[p];
        free[piece.end] += least[p];
      }
    for (int32_t r = 1; r <= m.rows; ++r)
      free[r] += free[r - 1];
    free.pop_back();
    for (int32_t r = 0; r < m.rows; ++r)
      free[r] = r < m.memoryRows ? free[r] + m.problem.capacity[r] : int64_t(1) << 61;
    slack.assign(free);
  }
  bool isOver() const { return m.rows > 0 && slack.leastIn(0, m.rows) < 0; }
  bool fits(int32_t i, int32_t x) const {
    for (int32_t p = m.pieceBegin[i]; p < m.pieceBegin[i + 1]; ++p) {
      int64_t more = m.exactUsage[m.pieces[p].usage + x] - least[p];
      if (more > 0 && more > slack.leastIn(m.pieces[p].begin, m.pieces[p].end))
        return false;
    }
    return true;
  }
  void take(int32_t i, int32_t x) {
    for (int32_t p = m.pieceBegin[i]; p < m.pieceBegin[i + 1]; ++p) {
      int64_t more = m.exactUsage[m.pieces[p].usage + x] - least[p];
      if (more != 0 && m.pieces[p].begin < m.memoryRows)
        slack.add(m.pieces[p].begin, m.pieces[p].end, -more);
      least[p] += more;
    }
  }
  /// Bans labels of the node that do not fit.
  void filter(Dual &target, int32_t i) const {
    for (int32_t p = m.pieceBegin[i]; p < m.pieceBegin[i + 1]; ++p) {
      int64_t room = slack.leastIn(m.pieces[p].begin, m.pieces[p].end);
      for (int32_t x = 0; x < m.labels[i]; ++x)
        if (m.exactUsage[m.pieces[p].usage + x] - least[p] > room)
          target.ban(i, x);
    }
  }

private:
  const Model &m;
  std::vector<int64_t> least;
  Slack slack;
};

int64_t roomWork(const Model &m) { return static_cast<int64_t>(m.exactUsage.size()) / 2 + m.rows; }

} // namespace

bool windlass::search::banWhatOverflows(Dual &dual, Meter &meter) {
  const Model &m = dual.model();
  Room room(dual);
  meter.spend(roomWork(m));
  if (room.isOver())
    return false;
  for (int32_t i = 0; i < m.nodes(); ++i) {
    room.filter(dual, i);
    if (dual.allowedLabels(i) == 0)
      return false;
  }
  dual.updatePrices();
  return true;
}

bool windlass::search::fixLabels(Dual &dual, Prices &prices, Incumbent &incumbent, int steps, Meter &meter) {
  const Model &m = dual.model();
  Solution decoded(m.nodes());
  std::vector<double> usage;
  int64_t banned = 0;
  constexpr double kFixProgress = 0.4, kSteerProgress = 0.5; // short steps gain nothing in so few
  for (int step = 0; step < steps && !meter.isOver(); ++step) {
    double bound = dual.forward(&decoded);
    if (bound > incumbent.mostBound())
      return true;
    usageOf(m, decoded, usage);
    if (fits(m, usage))
      incumbent.offer(m.problem, decoded);
    int64_t before = banned;
    bound = dual.backward(bound, incumbent.mostBound(), &banned);
    meter.spend(2 * m.passWork);
    if (bound > incumbent.mostBound())
      return true;
    bool isLast = step + 1 == steps;
    if ((banned != before && step % 4 == 3) || isLast)
      if (!banWhatOverflows(dual, meter))
        return true;
    // Most steps raise the bound; the last ones lead to labels that fit.
    if (4 * step < 3 * steps) {
      prices.setProgress(kFixProgress * step / steps);
      prices.step(dual, bound, static_cast<double>(incumbent.cost));
    } else {
      prices.setProgress(kSteerProgress);
      prices.steer(usage, bound, static_cast<double>(incumbent.cost));
    }
    dual.setPrices(isLast ? prices.best() : prices.current());
  }
  return false;
}

void windlass::search::dive(const Dual &start, Incumbent &incumbent, double noise, Random &random, Meter &meter) {
  constexpr int kSteps = 10;
  constexpr double kPart = 0.05, kSure = 0.02, kDiveProgress = 0.65;
  const Model &m = start.model();
  Dual dual = start;
  Prices prices(m, PriceRule::Exponentiated, start.prices());
  prices.setProgress(kDiveProgress);
  Solution decoded(m.nodes());
  std::vector<double> usage;
  std::vector<int32_t> open;
  for (int32_t i = 0; i < m.nodes(); ++i)
    if (dual.allowedLabels(i) > 1)
      open.push_back(i);
  while (!open.empty() && !meter.isOver()) {
    double bound = 0;
    for (int step = 0; step < kSteps; ++step) {
      dual.forward(&decoded);
      usageOf(m, decoded, usage);
      if (fits(m, usage))
        incumbent.offer(m.problem, decoded);
      bound = dual.backward();
      prices.step(dual, bound, static_cast<double>(incumbent.cost));
      dual.setPrices(prices.current());
    }
    meter.spend(kSteps * 2 * m.passWork);
    if (bound > incumbent.mostBound())
      return;
    std::vector<std::pair<double, int32_t>> order;
    for (int32_t i : open) {
      double second = static_cast<double>(kForbidden);
      const double *row = dual.marginals.data() + m.offset[i];
      bool hasBest = false;
      for (int32_t x = 0; x < m.labels[i]; ++x) {
        if (row[x] <= 0 && !hasBest)
          hasBest = true;
        else
          second = std::min(second, row[x]);
      }
      if (noise > 0)
        second *= std::exp(noise * (2 * random.uniform() - 1));
      order.push_back({-second, i});
    }
    std::sort(order.begin(), order.end());
    size_t most = std::max<size_t>(1, static_cast<size_t>(kPart * static_cast<double>(order.size())));
    Room room(dual);
    meter.spend(roomWork(m));
    if (room.isOver())
      return;
    for (size_t k = 0; k < order.size(); ++k) {
      if (k >= most && -order[k].first < kSure * std::fabs(bound))
        break;
      int32_t i = order[k].second, chosen = -1;
      const double *row = dual.marginals.data() + m.offset[i];
      for (int32_t x = 0; x < m.labels[i]; ++x)
        if (!dual.isBanned(i, x) && (chosen < 0 || row[x] < row[chosen]) && room.fits(i, x))
          chosen = x;
      if (chosen < 0)
        return;
      room.take(i, chosen);
      for (int32_t x = 0; x < m.labels[i]; ++x)
        if (x != chosen)
          dual.ban(i, x);
    }
    if (!banWhatOverflows(dual, meter))
      return;
    open.erase(std::remove_if(open.begin(), open.end(), [&](int32_t i) { return dual.allowedLabels(i) == 1; }),
               open.end());
  }
  if (!open.empty())
    return;
  for (int32_t i = 0; i < m.nodes(); ++i)
    for (int32_t x = 0; x < m.labels[i]; ++x)
      if (!dual.isBanned(i, x))
        decoded[i] = x;
  incumbent.offer(m.problem, decoded);
}
