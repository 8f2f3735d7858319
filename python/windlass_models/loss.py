"""Cross entropy as the exporter writes it."""

import numpy
import onnx
from onnx import TensorProto

IGNORED = -100


def cross_entropy(builder, logits, labels, classes):
    """Adds the scalar `loss` of `logits` [rows…, classes] and `labels` [rows…]; labels of −100 do not count."""
    flat_logits = builder.reshape(logits, [-1, classes])
    flat_labels = builder.reshape(labels, [-1])
    builder.op('SoftmaxCrossEntropyLoss', [flat_logits, flat_labels], 'cross_entropy_loss', origin='aten.cross_entropy_loss.default',
               ignore_index=IGNORED, reduction='mean')
    return builder.rename_last('loss')


def shifted(builder, labels, tokens):
    """Returns the causal shift of `labels` [batch, tokens]: position t gets the label of t + 1, the last one is ignored."""
    pads = builder.op('Constant', [], value=onnx.numpy_helper.from_array(numpy.array([0, 0, 0, 1], dtype=numpy.int64)))
    padded = builder.op('Pad', [labels, pads, builder.scalar(IGNORED, TensorProto.INT64)], 'pad', mode='constant')
    moved = builder.slice(padded, 1, 2**63 - 1, 1)
    return builder.op('Identity', [moved], 'clone')
