#include "RunSeries.h"

#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace windlass;
using namespace windlass::report;

Series report::seriesOf(const Run &run, std::string name, double Step::*field) {
  Series series = {std::move(name), {}, false};
  for (const Step &step : run.steps)
    series.points.emplace_back(double(step.step), step.*field);
  return series;
}

Series report::evaluationsOf(const Run &run, std::string name) {
  Series series = {std::move(name), {}, true};
  for (const Evaluation &each : run.evaluations)
    series.points.emplace_back(double(each.step), each.loss);
  return series;
}

double report::medianOf(const Run &run, double Step::*field) {
  std::vector<double> values;
  for (const Step &step : run.steps)
    if (std::isfinite(step.*field))
      values.push_back(step.*field);
  if (values.empty())
    return NAN;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

std::string report::formatRate(double rate) { return llvm::formatv(rate < 10 ? "{0:f2}" : "{0:f0}", rate); }
