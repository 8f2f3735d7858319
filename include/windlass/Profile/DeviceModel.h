// What the analytic model of a device has besides the rates that its data sheet states. No MLIR.
#ifndef WINDLASS_PROFILE_DEVICEMODEL_H
#define WINDLASS_PROFILE_DEVICEMODEL_H

namespace windlass {

/// The defaults are those of programs that Windlass emits; a profile may have others, fitted to measured steps.
struct DeviceModel {
  /// Of the peak, what large dense products reach: cuBLAS on A100 and H100 reaches 0.7 to 0.8 of the data sheet's rate.
  double productShare = 0.75;
  /// Products of so many flops reach half of that (n1/2 of Hockney and Jesshope: Parallel Computers, 1981): small ones
  /// fill the device for a part of their time only.
  double productHalfFlops = 0;
  /// Of the memory's rate, what streams reach.
  double memoryShare = 0.85;
  /// How many times as long attention takes as its roofline says: more where scores are written to memory.
  double attentionFactor = 1;
  /// Between two kernels of one stream.
  double launchSeconds = 4e-6;
  /// That the host takes for each command, while the device runs earlier ones: of a micro-batch, of the update. What
  /// Windlass emits issues faster than devices run; frameworks take tens of microseconds, and a few where one command
  /// updates many parameters.
  double issueSeconds = 0, updateIssueSeconds = 0;
  /// By which share of itself a step's time may be off.
  double errorShare = 1;
};

} // namespace windlass

#endif
