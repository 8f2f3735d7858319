//===- TrainingReport.cpp - how a file differs from the exported module ---===//

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"

#include "windlass/Support/Printable.h"
#include "windlass/Support/Words.h"

using namespace windlass;

/// The number of alterations and contradictions that are named; the others are counted.
constexpr size_t kNamed = 4;

std::string windlass::describeAlteration(const Alteration &alteration) {
  std::string text = printable(alteration.target, 120), with = printable(alteration.with, 120);
  switch (alteration.fate) {
  case Alteration::Fate::merged:
    return text + " (merged with " + with + ")";
  case Alteration::Fate::transposed:
    return text + " (transposed, now " + with + ")";
  case Alteration::Fate::renamed:
    return text + " (renamed, now " + with + ")";
  case Alteration::Fate::copied:
    return text + " (beside a copy of its own, " + with + ")";
  case Alteration::Fate::folded:
    return text + " (folded into a constant)";
  }
  return text;
}

std::string OnnxToTrainReport::describeAlterations() const {
  std::string text;
  if (!alterations.empty()) {
    text = std::to_string(alterations.size()) + " of " +
           countOf(static_cast<int64_t>(exportedParameters), "parameter") + (alterations.size() == 1 ? " is" : " are") +
           " not in it as the module had them: ";
    for (size_t i = 0; i < alterations.size() && i < kNamed; ++i)
      text += (i ? ", " : "") + describeAlteration(alterations[i]);
    if (alterations.size() > kNamed)
      text += " and " + std::to_string(alterations.size() - kNamed) + " more";
  }
  for (size_t i = 0; i < contradictions.size() && i < kNamed; ++i)
    text += (text.empty() ? "" : "; ") + contradictions[i];
  if (contradictions.size() > kNamed)
    text += "; and " + std::to_string(contradictions.size() - kNamed) + " more nodes like these";
  return text;
}
