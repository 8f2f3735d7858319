// Operators of `@update`.
#ifndef WINDLASS_TRAIN_OPTIMIZER_OPS_TD
#define WINDLASS_TRAIN_OPTIMIZER_OPS_TD

include "windlass/Dialect/Train/IR/TrainBase.td"

def SquareSumOp : Train_ComputeOp<"square_sum"> {
  let summary = "sum of the squares of all elements of one tensor";
  let arguments = (ins Train_FloatTensor:$input);
  let results = (outs Train_FloatScalarTensor:$result);
  let assemblyFormat = "$input `:` type($input) `->` type($result) attr-dict";
}

def ClipFactorOp : Train_ComputeOp<"clip_factor", [SameOperandsAndResultType]> {
  let summary = "min(1, limit / (norm + 1e-6)): what global-norm clipping multiplies gradients with";
  let arguments = (ins Train_FloatScalarTensor:$norm, Train_FloatScalarTensor:$limit);
  let results = (outs Train_FloatScalarTensor:$result);
  let assemblyFormat = "$norm `,` $limit `:` type($result) attr-dict";
}

def AdamWOp : Train_InferredOp<"adamw"> {
  let summary = "one step of AdamW (arXiv:1711.05101) or Adam (arXiv:1412.6980) as PyTorch makes it";
  let description = [{
    g = gradient * gradient_scale; w <- w (1 - lr wd) where it decays; m <- beta1 m + (1 - beta1) g;
    v <- beta2 v + (1 - beta2) g^2; w <- w - lr (m / bias_correction1) / (sqrt(v / bias_correction2) + epsilon), with
    bias corrections 1 - beta^t. With `coupled`, which makes it Adam, weight decay is part of the gradient instead:
    g <- g + wd w before the moments, and the weight is not shrunk. 1 - beta is an operand: taken from a beta in f32 it
    would be wrong in the fifth digit.
    Where gradient_scale is NaN (gradients of a scaled loss have overflowed), all stay as they are. The gradient may be
    bf16.
  }];
  let arguments = (ins Train_FloatTensor:$weight, Train_FloatTensor:$exp_avg, Train_FloatTensor:$exp_avg_sq,
                       Train_FloatTensor:$gradient, Train_FloatScalarTensor:$learning_rate,
                       Train_FloatScalarTensor:$one_minus_beta1, Train_FloatScalarTensor:$one_minus_beta2,
                       Train_FloatScalarTensor:$epsilon, Train_FloatScalarTensor:$weight_decay,
                       Train_FloatScalarTensor:$bias_correction1, Train_FloatScalarTensor:$bias_correction2,
                       Train_FloatScalarTensor:$gradient_scale, UnitAttr:$decays, UnitAttr:$coupled);
  let results = (outs Train_FloatTensor:$new_weight, Train_FloatTensor:$new_exp_avg,
                      Train_FloatTensor:$new_exp_avg_sq);
  let assemblyFormat = [{
    operands (`decays` $decays^)? (`coupled` $coupled^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def LambOp : Train_InferredOp<"lamb"> {
  let summary = "the direction of one step of LAMB (You et al., arXiv:1904.00962)";
  let description = [{
    g = gradient * gradient_scale; m and v as in adamw; direction = (m / bias_correction1) / (sqrt(v / bias_correction2)
    + epsilon), plus wd w where it decays. How far the weight descends along it depends on both of their norms. Where
    gradient_scale is NaN, the direction is 0, and the state stays as it is.
  }];
  let arguments = (ins Train_FloatTensor:$weight, Train_FloatTensor:$exp_avg, Train_FloatTensor:$exp_avg_sq,
                       Train_FloatTensor:$gradient, Train_FloatScalarTensor:$one_minus_beta1,
                       Train_FloatScalarTensor:$one_minus_beta2, Train_FloatScalarTensor:$epsilon,
                       Train_FloatScalarTensor:$weight_decay, Train_FloatScalarTensor:$bias_correction1,
                       Train_FloatScalarTensor:$bias_correction2, Train_FloatScalarTensor:$gradient_scale,
                       UnitAttr:$decays);
  let results = (outs Train_FloatTensor:$direction, Train_FloatTensor:$new_exp_avg, Train_FloatTensor:$new_exp_avg_sq);
  let assemblyFormat = "operands (`decays` $decays^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def MomentumOp : Train_InferredOp<"momentum"> {
  let summary = "the direction that Nesterov's momentum gives, as Muon takes it";
  let description = [{
    g = gradient * gradient_scale; buffer <- buffer + (1 - momentum) (g - buffer); direction = g + momentum (buffer - g).
    Where gradient_scale is NaN, the direction is 0, and the buffer stays as it is.
  }];
  let arguments = (ins Train_FloatTensor:$buffer, Train_FloatTensor:$gradient, Train_FloatScalarTensor:$momentum,
                       Train_FloatScalarTensor:$gradient_scale);
  let results = (outs Train_FloatTensor:$new_buffer, Train_FloatTensor:$direction);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def DescendOp : Train_InferredOp<"descend"> {
  let summary = "a weight that shrinks and moves along a direction: weight (1 - decay) - rate * direction";
  let arguments = (ins Train_FloatTensor:$weight, Train_FloatTensor:$direction, Train_FloatScalarTensor:$rate,
                       Train_FloatScalarTensor:$decay);
  let results = (outs Train_FloatTensor:$new_weight);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def LionOp : Train_InferredOp<"lion"> {
  let summary = "one step of Lion (Chen et al., arXiv:2302.06675)";
  let description = [{
    g = gradient * gradient_scale; w <- w (1 - lr wd) where it decays; w <- w - lr sign(beta1 m + (1 - beta1) g);
    m <- beta2 m + (1 - beta2) g. The sign of 0 is 0. Where gradient_scale is NaN, both stay as they are.
  }];
  let arguments = (ins Train_FloatTensor:$weight, Train_FloatTensor:$exp_avg, Train_FloatTensor:$gradient,
                       Train_FloatScalarTensor:$learning_rate, Train_FloatScalarTensor:$one_minus_beta1,
                       Train_FloatScalarTensor:$one_minus_beta2, Train_FloatScalarTensor:$weight_decay,
                       Train_FloatScalarTensor:$gradient_scale, UnitAttr:$decays);
  let results = (outs Train_FloatTensor:$new_weight, Train_FloatTensor:$new_exp_avg);
  let assemblyFormat = "operands (`decays` $decays^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def SgdOp : Train_InferredOp<"sgd"> {
  let summary = "one step of gradient descent with momentum as PyTorch makes it";
  let description = [{
    g = gradient * gradient_scale + wd w (where it decays); v <- momentum v + g; w <- w - lr v. v starts at 0, so the
    first step gives v = g. Where gradient_scale is NaN, both stay as they are.
  }];
  let arguments = (ins Train_FloatTensor:$weight, Train_FloatTensor:$momentum_buffer, Train_FloatTensor:$gradient,
                       Train_FloatScalarTensor:$learning_rate, Train_FloatScalarTensor:$momentum,
                       Train_FloatScalarTensor:$weight_decay, Train_FloatScalarTensor:$gradient_scale,
                       UnitAttr:$decays);
  let results = (outs Train_FloatTensor:$new_weight, Train_FloatTensor:$new_momentum_buffer);
  let assemblyFormat = "operands (`decays` $decays^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def EmaOp : Train_InferredOp<"ema"> {
  let summary = "an exponential moving average moved towards a value: average + rate * (value - average)";
  let description = [{
    The rate is 1 less the share of the old average that is kept. In the first step it is 1, which makes the average the
    value itself, as averages of weights begin in PyTorch's AveragedModel and those of squares in Adafactor.
  }];
  let arguments = (ins Train_FloatTensor:$average, Train_FloatTensor:$value, Train_FloatScalarTensor:$rate);
  let results = (outs Train_FloatTensor:$new_average);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def AverageOp : Train_InferredOp<"average"> {
  let summary = "a running statistic moved towards what the step found: running - rate * gradient";
  let description = [{ `gradient` is the mean over the micro-batches of `running` less the statistic. }];
  let arguments = (ins Train_FloatTensor:$running, Train_FloatTensor:$gradient, F64Attr:$rate);
  let results = (outs Train_FloatTensor:$new_running);
  let assemblyFormat = "operands `rate` $rate attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif
