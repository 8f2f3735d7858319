#include "windlass/rt/detail/window_plan.h"

#include <string>

namespace windlass::rt::detail {

namespace {

status misfit(const char *kernel) {
  return internal_error(std::string(kernel) + " got views and windows whose ranks or sizes do not fit");
}

/// Describes the spatial dims, the last ones of [.., .., spatial..]; false where they do not fit.
bool plan_axes(const view &y, const view &x, const windows &of, window_plan &plan) {
  const int spatial = x.rank - 2;
  if (spatial < 1 || spatial > 3 || y.rank != x.rank)
    return false;
  for (int i = 0; i < spatial; ++i) {
    window_axis &axis = plan.axes[3 - spatial + i];
    axis = {x.sizes[i + 2], y.sizes[i + 2], of.sizes[i], of.strides[i], of.dilations[i], of.pads[i]};
    if (axis.in < 1 || axis.out < 1 || axis.size < 1 || axis.stride < 1 || axis.dilation < 1 || axis.pad < 0)
      return false;
  }
  return true;
}

window_strides strides_of(const view &v) {
  window_strides s;
  s.outer = v.strides[0];
  s.channel = v.strides[1];
  for (int d = 2; d < v.rank; ++d)
    s.spatial[5 - v.rank + d - 2] = v.strides[d];
  return s;
}

} // namespace

status plan_convolution(const char *kernel, const view &y, const view &x, const view &w, const windows &of,
                        window_plan &plan) {
  if (!plan_axes(y, x, of, plan) || w.rank != x.rank)
    return misfit(kernel);
  plan.ins = w.sizes[1];
  if (plan.ins < 1 || x.sizes[1] < 1 || x.sizes[1] % plan.ins != 0)
    return misfit(kernel);
  plan.batch = x.sizes[0];
  plan.groups = x.sizes[1] / plan.ins;
  plan.outs = w.sizes[0] / plan.groups;
  bool fits = y.sizes[0] == plan.batch && y.sizes[1] == w.sizes[0] && w.sizes[0] == plan.groups * plan.outs;
  for (int d = 2; d < w.rank; ++d)
    fits = fits && w.sizes[d] == of.sizes[d - 2];
  if (!fits)
    return misfit(kernel);
  plan.x = strides_of(x);
  plan.w = strides_of(w);
  plan.y = strides_of(y);
  return {};
}

status plan_pooling(const char *kernel, const view &y, const view &x, const windows &of, window_plan &plan) {
  if (!plan_axes(y, x, of, plan) || y.sizes[0] != x.sizes[0] || y.sizes[1] != x.sizes[1])
    return misfit(kernel);
  plan.batch = x.sizes[0];
  plan.groups = x.sizes[1];
  plan.ins = plan.outs = 1;
  plan.x = strides_of(x);
  plan.y = strides_of(y);
  return {};
}

} // namespace windlass::rt::detail
