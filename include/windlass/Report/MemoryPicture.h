// What device memory holds over a step, as a picture.
#ifndef WINDLASS_REPORT_MEMORYPICTURE_H
#define WINDLASS_REPORT_MEMORYPICTURE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace windlass::report {

/// Values over the same moments as those of other layers, which are drawn one on top of the other.
struct Layer {
  std::string name;
  std::vector<double> values;
};

/// The device memory of a rank over the commands of a step.
struct MemoryPicture {
  /// Bytes by content.
  std::vector<Layer> layers;
  /// Where the functions of a step begin among its commands.
  std::vector<std::pair<std::string, std::size_t>> functions;
  /// The bytes that there are; 0 where unknown.
  int64_t limit = 0;
};

/// Draws the layers as SVG. Text is escaped; numbers that are not finite are drawn as 0.
std::string drawMemory(const MemoryPicture &picture);

} // namespace windlass::report

#endif
