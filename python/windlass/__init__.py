"""Windlass from Python: PyTorch modules become training graphs, `windlass` plans and trains them, and runs are read back.

    exported = windlass.export(module, {'input_ids': ids, 'labels': labels}, 'model.onnx')
    run = windlass.train(exported, batches, 'run', steps=100, lr=3e-4, on_metrics=print)
    print(windlass.compare(run, module, exported))
    windlass.to_torch(module, run)

The module computes its loss itself: the loss is its output, or its first output of one number. Everything but `export`, `compare` and
`to_torch` works without torch.
"""

from .command import WindlassError, run_command
from .plans import Plan, plan
from .runs import Run
from .tokenizing import tokenize
from .training import check, train

__all__ = ['Comparison', 'Export', 'Plan', 'Run', 'WindlassError', 'check', 'compare', 'export', 'plan', 'run_command', 'to_torch', 'tokenize',
           'train']


def __getattr__(name):
    # These need torch, which takes seconds to import.
    if name in ('Export', 'export'):
        from . import exporting
        return getattr(exporting, name)
    if name in ('Comparison', 'compare', 'to_torch'):
        from . import comparing
        return getattr(comparing, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
