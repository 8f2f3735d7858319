// What the analytic model of a device has besides the rates that its data sheet states. No MLIR.
#ifndef WINDLASS_PROFILE_DEVICEMODEL_H
#define WINDLASS_PROFILE_DEVICEMODEL_H

namespace windlass {

/// The parameters of the analytic model. The defaults are those of programs that Windlass emits; a profile may have
/// others, fitted to measured steps.
struct DeviceModel {
  /// The share of the peak that large dense products reach: cuBLAS on A100 and H100 reaches 0.7 to 0.8 of the data
  /// sheet's rate.
  double productShare = 0.75;
  /// The FLOPs of a product that reaches half of that rate (n1/2 of Hockney and Jesshope: Parallel Computers, 1981): a
  /// small product fills the device for only a part of its time.
  double productHalfFlops = 0;
  /// The share of the memory's rate that streaming reaches.
  double memoryShare = 0.85;
  /// How many times as long attention takes as its roofline says: more than 1 where scores are written to memory.
  double attentionFactor = 1;
  /// The seconds between two kernels of one stream.
  double launchSeconds = 4e-6;
  /// The seconds that the host takes to issue a command of a micro-batch, and a command of the update, while the device
  /// runs earlier ones. Programs that Windlass emits issue faster than devices run; frameworks take tens of
  /// microseconds, and a few microseconds where one command updates many parameters.
  double issueSeconds = 0, updateIssueSeconds = 0;
  /// The share of a predicted time by which it may be off.
  double errorShare = 1;
};

} // namespace windlass

#endif
