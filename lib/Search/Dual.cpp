#include "Dual.h"

#include <algorithm>
#include <cmath>

using namespace windlass::search;

/// The weight of a stream at first, before all weights of its window are made to add up to 1, is the larger of
/// kFirstWeight and exp(kFirstFactor (least load / least load of the busiest stream - 1)).
static constexpr double kFirstFactor = 30, kFirstWeight = 1e-3;

/// Returns for each row of a stream its load where every node has the label that loads it least.
static std::vector<double> getLeastLoads(const Model &m) {
  std::vector<double> loads(m.problem.load.begin(), m.problem.load.end());
  Doubles own(padded(m.mostLabels));
  for (int32_t i = 0; i < m.nodes(); ++i)
    for (int32_t r = m.memoryRows; r < m.rows; ++r) {
      std::copy_n(m.cost.data() + m.offset[i], m.stride[i], own.data());
      for (int32_t x = 0; x < m.labels[i]; ++x)
        own[x] = own[x] < kForbidden ? 0 : kForbidden;
      for (int32_t p = m.pieceBegin[i]; p < m.pieceBegin[i + 1]; ++p)
        if (const Model::ModelPiece &piece = m.pieces[p]; piece.begin <= r && r < piece.end)
          addRow(own.data(), m.usage.data() + piece.usage, m.stride[i]);
      loads[r - m.memoryRows] += *std::min_element(own.data(), own.data() + m.labels[i]);
    }
  return loads;
}

Dual::Dual(const Model &model)
    : marginals(model.totalLabels), messages(model.totalMessages), m(&model), unary(model.cost), priced(model.cost),
      row(padded(model.mostLabels)), scaled(row.size()), score(row.size()), weights(row.size()),
      room(model.messageRoom()), price(model.rows), prefix(model.rows + 1) {
  // A window takes as long as its busiest stream. Likely that is the stream with the largest least load.
  std::vector<double> loads = getLeastLoads(model);
  int32_t stream = 0;
  for (int32_t end : model.problem.windowEnd) {
    double busiest = std::max(1.0, *std::max_element(loads.begin() + stream, loads.begin() + end)), sum = 0;
    for (int32_t s = stream; s < end; ++s)
      sum += loads[s] = std::max(std::exp(kFirstFactor * (loads[s] / busiest - 1)), kFirstWeight);
    for (; stream < end; ++stream)
      price[model.memoryRows + stream] = loads[stream] / sum;
  }
  updatePrices();
}

int32_t Dual::allowedLabels(int32_t i) const {
  int32_t count = 0;
  for (int32_t x = 0; x < m->labels[i]; ++x)
    count += !isBanned(i, x);
  return count;
}

void Dual::setPrices(std::vector<double> prices) {
  price = std::move(prices);
  updatePrices();
}

void Dual::updatePrices() {
  constant = static_cast<double>(m->problem.constant);
  for (int32_t r = 0; r < m->rows; ++r) {
    prefix[r + 1] = prefix[r] + price[r];
    constant += price[r] * (r < m->memoryRows ? -static_cast<double>(m->problem.capacity[r])
                                              : static_cast<double>(m->problem.load[r - m->memoryRows]));
  }
  priced = unary;
  for (int32_t i = 0; i < m->nodes(); ++i)
    for (int32_t p = m->pieceBegin[i]; p < m->pieceBegin[i + 1]; ++p) {
      const Model::ModelPiece &piece = m->pieces[p];
      double factor = prefix[piece.end] - prefix[piece.begin];
      if (factor > 0)
        addScaled(priced.data() + m->offset[i], m->usage.data() + piece.usage, factor, m->stride[i]);
    }
}

/// Sends the messages of node i, whose normalised sum is in `row`; returns what they add to the bound.
double Dual::outgoing(const Arc *begin, const Arc *end, double weight, int32_t i) {
  double bound = 0;
  for (const Arc *arc = begin; arc != end; ++arc) {
    int32_t width = m->stride[arc->other];
    double *out = messages.data() + arc->out;
    scaleAndSubtract(scaled.data(), row.data(), weight, messages.data() + arc->in, m->stride[i]);
    m->send(out, scaled.data(), *arc, i, room.data());
    bound += subtractLeast(out, width);
  }
  return bound;
}

double Dual::forward(Solution *decoded) {
  double bound = constant;
  for (int32_t i = 0; i < m->nodes(); ++i) {
    const Arc *begin = m->arcsBegin(i), *middle = m->arcsMiddle(i), *end = m->arcsEnd(i);
    int32_t stride = m->stride[i];
    std::copy_n(priced.data() + m->offset[i], stride, row.data());
    for (const Arc *arc = middle; arc != end; ++arc)
      addRow(row.data(), messages.data() + arc->in, stride);
    if (decoded) {
      std::copy_n(row.data(), stride, score.data());
      for (const Arc *arc = begin; arc != middle; ++arc)
        addRow(score.data(), arc->transposed + static_cast<size_t>((*decoded)[arc->other]) * stride, stride);
      (*decoded)[i] = static_cast<int32_t>(std::min_element(score.data(), score.data() + m->labels[i]) - score.data());
    }
    for (const Arc *arc = begin; arc != middle; ++arc)
      addRow(row.data(), messages.data() + arc->in, stride);
    bound += subtractLeast(row.data(), stride);
    double weight = 1.0 / std::max<double>(1.0, std::max(middle - begin, end - middle));
    bound += outgoing(middle, end, weight, i);
  }
  return bound;
}

double Dual::backward(double forwardBound, double most, int64_t *banned) {
  double bound = constant;
  for (int32_t i = m->nodes(); i-- > 0;) {
    const Arc *begin = m->arcsBegin(i), *middle = m->arcsMiddle(i), *end = m->arcsEnd(i);
    int32_t stride = m->stride[i];
    std::copy_n(priced.data() + m->offset[i], stride, row.data());
    for (const Arc *arc = begin; arc != end; ++arc)
      addRow(row.data(), messages.data() + arc->in, stride);
    bound += subtractLeast(row.data(), stride);
    std::copy_n(row.data(), stride, marginals.data() + m->offset[i]);
    if (banned)
      for (int32_t x = 0; x < m->labels[i]; ++x)
        if (forwardBound + row[x] > most && !isBanned(i, x)) {
          ban(i, x);
          priced[m->offset[i] + x] = row[x] = static_cast<double>(kForbidden);
          ++*banned;
        }
    double weight = 1.0 / std::max<double>(1.0, std::max(middle - begin, end - middle));
    bound += outgoing(begin, middle, weight, i);
  }
  return bound;
}

void windlass::search::usageOf(const Model &model, const Solution &solution, std::vector<double> &usage) {
  usage.assign(model.rows + 1, 0);
  for (int32_t i = 0; i < model.nodes(); ++i)
    for (int32_t p = model.pieceBegin[i]; p < model.pieceBegin[i + 1]; ++p) {
      const Model::ModelPiece &piece = model.pieces[p];
      double amount = model.usage[piece.usage + solution[i]];
      usage[piece.begin] += amount;
      usage[piece.end] -= amount;
    }
  for (int32_t r = 1; r < model.rows; ++r)
    usage[r] += usage[r - 1];
  usage.resize(model.rows);
  for (int32_t r = model.memoryRows; r < model.rows; ++r)
    usage[r] += static_cast<double>(model.problem.load[r - model.memoryRows]);
}

bool windlass::search::fits(const Model &model, const std::vector<double> &usage) {
  for (int32_t r = 0; r < model.memoryRows; ++r)
    if (usage[r] > static_cast<double>(model.problem.capacity[r]))
      return false;
  return true;
}

void Dual::softUsage(double temperature, std::vector<double> &usage) {
  usage.assign(m->rows + 1, 0);
  for (int32_t i = 0; i < m->nodes(); ++i) {
    int32_t begin = m->pieceBegin[i], end = m->pieceBegin[i + 1], count = m->labels[i];
    if (begin == end)
      continue;
    const double *worse = marginals.data() + m->offset[i];
    double sum = 0;
    for (int32_t x = 0; x < count; ++x) {
      weights[x] = worse[x] <= 0                                    ? 1
                   : temperature > 0 && worse[x] < 30 * temperature ? std::exp(-worse[x] / temperature)
                                                                    : 0;
      sum += weights[x];
    }
    for (int32_t p = begin; p < end; ++p) {
      const Model::ModelPiece &piece = m->pieces[p];
      double amount = 0;
      for (int32_t x = 0; x < count; ++x)
        amount += weights[x] * m->usage[piece.usage + x];
      usage[piece.begin] += amount / sum;
      usage[piece.end] -= amount / sum;
    }
  }
  for (int32_t r = 1; r < m->rows; ++r)
    usage[r] += usage[r - 1];
  usage.resize(m->rows);
  for (int32_t r = m->memoryRows; r < m->rows; ++r)
    usage[r] += static_cast<double>(m->problem.load[r - m->memoryRows]);
}

namespace {
constexpr double kLongestFactor = 0.4, kLongestStep = 0.5, kSmoothing = 0.3, kLeastLog = 25;
} // namespace

Prices::Prices(const Model &model, PriceRule rule, const std::vector<double> &prices)
    : m(model), rule(rule), price(prices), bestPrice(prices), violation(model.rows) {
  for (int32_t r = 0; r < m.memoryRows; ++r)
    hasMass |= price[r] > 0;
}

void Prices::setProgress(double progress) { part = std::pow(0.01, std::clamp(progress, 0.0, 1.0)); }

double Prices::temperature(double bound, double target) const {
  // The amount by which the labels of a node differ where they matter, as its part of the gap. The cost itself says
  // little about it, because much of it may be fixed.
  double gap = std::clamp(target - bound, 1.0, 0.05 * std::max(20.0, std::fabs(bound)));
  return 1.4 * std::sqrt(part) * gap / m.nodes();
}

void Prices::step(Dual &dual, double bound, double target) {
  dual.softUsage(temperature(bound, target), usage);
  move(bound, target);
}

void Prices::steer(const std::vector<double> &chosen, double bound, double target) {
  usage = chosen;
  move(bound, target);
}

void Prices::move(double bound, double target) {
  if (bound > bestValue) {
    bestValue = bound;
    bestPrice = price;
  }
  for (int32_t r = 0; r < m.memoryRows; ++r) {
    double now = (usage[r] - static_cast<double>(m.problem.capacity[r])) / m.scale[r];
    violation[r] += kSmoothing * (now - violation[r]);
  }
  if (rule == PriceRule::Exponentiated)
    stepExponentiated(bound);
  else
    stepPolyak(bound, target);
  stepStreams();
}

void Prices::stepExponentiated(double bound) {
  if (!hasMass && m.memoryRows) {
    double mass = 1e-3 * std::max(std::fabs(bound), 1.0) / m.memoryRows;
    for (int32_t r = 0; r < m.memoryRows; ++r)
      price[r] = mass / m.scale[r];
    hasMass = true;
  }
  double largest = 0;
  for (int32_t r = 0; r < m.memoryRows; ++r) {
    price[r] *= std::exp(kLongestFactor * part * std::clamp(violation[r], -1.0, 1.0));
    largest = std::max(largest, price[r] * m.scale[r]);
  }
  double least = largest * std::exp(-kLeastLog);
  for (int32_t r = 0; r < m.memoryRows; ++r)
    price[r] = std::max(price[r], least / m.scale[r]);
}

/// Takes a step of Polyak's rule (USSR Computational Mathematics and Mathematical Physics 1969).
void Prices::stepPolyak(double bound, double target) {
  double norm = 0;
  for (int32_t r = 0; r < m.memoryRows; ++r)
    if (violation[r] > 0 || price[r] > 0)
      norm += violation[r] * violation[r];
  if (norm <= 0)
    return;
  if (target >= kForbidden)
    target = bound + 0.05 * std::fabs(bound);
  double length = kLongestStep * part * std::max(target - bound, 1e-6 * std::fabs(bound)) / norm;
  for (int32_t r = 0; r < m.memoryRows; ++r)
    price[r] = std::max(price[r] + length * violation[r] / m.scale[r], 0.0);
}

/// Takes weight from streams that are not the busiest of their window.
void Prices::stepStreams() {
  int32_t stream = 0;
  for (int32_t end : m.problem.windowEnd) {
    const double *load = usage.data() + m.memoryRows;
    double *weight = price.data() + m.memoryRows;
    double busiest = 0, sum = 0;
    for (int32_t s = stream; s < end; ++s)
      busiest = std::max(busiest, load[s]);
    for (int32_t s = stream; s < end; ++s) {
      if (busiest > 0)
        weight[s] *= std::exp(kLongestFactor * part * (load[s] / busiest - 1));
      weight[s] = std::max(weight[s], 1e-9);
      sum += weight[s];
    }
    for (; stream < end; ++stream)
      weight[stream] /= sum;
  }
}
