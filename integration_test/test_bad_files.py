"""Bad input: every case of the package `bad_input` ends with one line that says why, the right exit code, no crash, nothing
written where it does not belong, and within bounds of time and memory. Prints how many cases were run.

    test_bad_files.py [--only PART-OF-A-NAME] [CLASS.TEST...]
"""

import os
import pathlib
import re
import resource
import shutil
import sys
import tempfile
import time

import numpy

import common
from bad_input import annotations, checkpoints, claims, data, experts, external, graphs, models, plans, problems, schedules, settings
from bad_input.case import UNSUPPORTED
from windlass_models import safetensors_file

SECONDS, BYTES = 10, 2 << 30
# The memory of a sanitizer's bookkeeping is not counted as the program's.
IS_SANITIZED = os.environ.get('WINDLASS_SANITIZED') == 'ON'
# Programs with sanitizers take five times as long, and neighbouring cases differ little: every third one is run.
SHARE_SANITIZED = 3
MODELS = (models.files, models.damaged, models.packed, models.versions, models.operators, models.attributes, models.shapes, models.values,
          models.losses, models.dimensions, graphs.names, graphs.functions, graphs.amplified, graphs.nesting, graphs.far_shapes, graphs.counts, external.places, external.constants, problems.problems, experts.experts,
          schedules.schedules)
RUNS = (settings.plans, plans.edits, plans.pins, plans.asked, claims.claims, claims.certificates, annotations.annotations, settings.clusters, settings.cluster_files, settings.profile_files, settings.configs, settings.flags, data.batches, data.tokens, data.arrays, checkpoints.damaged,
        checkpoints.manifests, checkpoints.others)
only = ''
outcomes = []


def limit():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not IS_SANITIZED:
        resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))


def contents(folder, but):
    """Returns everything below `folder` with its kind, size and time of change, except what is at or below `but`, or a plan's certificate next to it."""
    left_out = {but, os.path.splitext(but)[0] + '.cert'}
    found = {}
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if os.path.join(at, name) not in left_out]
        for name in folders + names:
            path = os.path.join(at, name)
            if path not in left_out:
                info = os.lstat(path)
                found[path] = (info.st_mode, 0 if name in folders else info.st_size, 0 if name in folders else info.st_mtime_ns)
    return found


class Sweep(common.Case):
    """Runs all cases of a function as one test."""
    programs = {'windlass': common.WINDLASS, 'solve': common.WINDLASS.parent / 'windlass-solve'}

    def wrong(self, case, folder):
        """Returns a description of what is wrong with the outcome of a case; nothing when all is right."""
        output = os.path.join(folder, case.output) if case.output else ''
        before = contents(self.folder, output)
        try:
            outcome = common.run([self.programs[case.program], *case.words], env=self.environment, cwd=self.folder / 'cwd', timeout=120, limit=limit)
        except TimeoutError:
            return ['did not end within 120 s']
        problems = []
        outcomes.append((case.name, outcome))
        if outcome.code not in case.codes:
            problems.append(f'exit code {outcome.code}, not {" or ".join(map(str, case.codes))}')
        lines = [line for line in outcome.err.splitlines() if line.strip()]
        errors = [line for line in lines if re.match(r'(windlass: )?error: .{8,}|windlass-solve: (error: .{8,}|no solution fits)', line)]
        if outcome.code == UNSUPPORTED and not errors:
            if 'not supported' not in outcome.out:
                problems.append('names no operator that is not supported')
        elif outcome.code != 0 and (len(errors) != 1 or lines[-1] != errors[0] or (case.program == 'windlass' and len(lines) != 1)):
            problems.append('does not give one diagnostic')
        if any(not (character.isprintable() or character == '\ufffd') for line in lines for character in line):
            problems.append('prints control characters')
        if any(len(line) > 6000 for line in lines):
            problems.append('prints a line of more than 6000 characters')
        said = (outcome.err + outcome.out if outcome.code == UNSUPPORTED else outcome.err).lower()
        if outcome.code != 0:
            problems += [f'does not say {word!r}' for word in case.says if word.lower() not in said]
        if 'Sanitizer' in outcome.err or 'runtime error' in outcome.err:
            problems.append('a sanitizer reports')
        if outcome.processor_seconds > SECONDS * (6 if IS_SANITIZED else 1):
            problems.append(f'takes {outcome.processor_seconds:.1f} s')
        if outcome.peak_bytes > BYTES and not IS_SANITIZED:
            problems.append(f'takes {outcome.peak_bytes >> 20} MiB')
        after = contents(self.folder, output)
        if after != before:
            changed = sorted(path for path in set(after) | set(before) if after.get(path) != before.get(path))
            problems.append(f'changes {changed[:3]}')
        return problems and problems + [outcome.err[-1500:]]

    def sweep(self, cases, *more):
        self.environment = {'HOME': str(self.folder / 'home'), 'TMPDIR': str(self.folder / 'tmp'), 'OMPI_MCA_orte_tmpdir_base': str(self.folder / 'tmp')}
        for name in ('home', 'tmp', 'cwd', 'case'):
            (self.folder / name).mkdir()
        folder = self.folder / 'case'
        failures, count, begin = [], 0, time.monotonic()
        for case in cases(folder, *more):
            if only not in f'{cases.__module__}.{cases.__name__}: {case.name}':
                continue
            count += 1
            if IS_SANITIZED and count % SHARE_SANITIZED != 1:
                continue
            if problems := self.wrong(case, folder):
                failures.append(f'{case.name}: ' + '; '.join(problems) + f'\n    {" ".join(map(str, case.words))[:300]}')
                print('WRONG', failures[-1], flush=True)
            if case.output:
                path = folder / case.output
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        run = -(-count // SHARE_SANITIZED) if IS_SANITIZED else count
        print(f'{cases.__module__}.{cases.__name__}: {run} of {count} cases in {time.monotonic() - begin:.1f} s', flush=True)
        self.assertFalse(failures, f'{len(failures)} of {count} cases are wrong')


class ModelFiles(Sweep):
    pass


class RunFiles(Sweep):
    @classmethod
    def setUpClass(cls):
        """Makes the models that the cases damage, their programs, and a run of each."""
        folder = tempfile.TemporaryDirectory(prefix='windlass-made-')
        cls.addClassCleanup(folder.cleanup)
        cls.made = pathlib.Path(folder.name)
        settings.prepare(cls.made)
        numbers = numpy.random.RandomState(0)
        batches = {f'x.{k}': numbers.standard_normal((2, 4)).astype(numpy.float32) for k in range(4)}
        batches |= {f'labels.{k}': numbers.randint(0, 3, 2) for k in range(4)}
        safetensors_file.write(batches, cls.made / 'classifier.safetensors')
        (cls.made / 'gpt.bin').write_bytes(b'\3\0' * 100)
        cls.programs = dict(Sweep.programs)
        for name, feed, run in (('classifier', 'classifier.safetensors', 'run'), ('gpt', 'gpt.bin', 'gpt-run')):
            # With sanitizers the runtime's kernels take minutes to compile.
            outcome = common.windlass('train', cls.made / f'{name}.onnx', '--data', cls.made / feed, '--steps', 2, '-o', cls.made / run, '-v', timeout=1800)
            assert outcome.code == 0, outcome.err
            cls.programs[name] = str(common.built_folder(outcome) / 'build' / 'train')
        outcome = common.windlass('plan', cls.made / 'classifier.onnx', '--cluster', 'cpu:1', '--strategy', 'ddp', '-o', cls.made / 'plan.json')
        assert outcome.code == 0, outcome.err
        outcome = common.windlass('plan', cls.made / 'gpt.onnx', '--cluster', 'cpu:4', '--strategy', 'zero1*megatron=2', '--micro-batches', 2, '-o', cls.made / 'plan-4.json')
        assert outcome.code == 0, outcome.err
        outcome = common.windlass('plan', cls.made / 'gpt.onnx', '--cluster', 'cpu:2', '--strategy', 'auto', '-o', cls.made / 'searched.json')
        assert outcome.code == 0, outcome.err


def add(to, cases, *more):
    setattr(to, f'test_{cases.__module__.split(".")[-1]}_{cases.__name__}', lambda self: self.sweep(cases, *[getattr(self, name) for name in more]))


def tearDownModule():
    if outcomes:
        slow, large = max(outcomes, key=lambda each: each[1].processor_seconds), max(outcomes, key=lambda each: each[1].peak_bytes)
        print(f'{len(outcomes)} cases of bad input; slowest {slow[1].processor_seconds:.1f} s ({slow[0]}), largest {large[1].peak_bytes >> 20} MiB ({large[0]})')


for each in MODELS:
    add(ModelFiles, each)
for each in RUNS:
    add(RunFiles, each, 'made')
if '--only' in sys.argv:
    at = sys.argv.index('--only')
    only = sys.argv[at + 1]
    del sys.argv[at:at + 2]
common.main()
