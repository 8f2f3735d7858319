"""The subcommands for plans: a person asks why an operator is placed so, compares two of them, and reads errors as JSON."""

import json

import onnx

import common

MATMUL = 'transformer.h.0.mlp.matmul.0'
WEIGHT = 'transformer.h.0.mlp.c_fc.weight'
# One layer is 16 wide, of 2 heads, and sees 4 samples of 8 tokens.
SAMPLES, TOKENS, WIDTH, HIDDEN = 4, 8, 16, 64


class PlanCase(common.Case):
    def make(self, name='plan.json', *flags, layers=2, strategy='zero3*megatron=2'):
        self.model = self.small_gpt(tokens=TOKENS, width=WIDTH, vocabulary=32, layers=layers)
        path = self.folder / name
        self.succeed('plan', self.model, '--cluster', 'cpu:4', '--strategy', strategy, '--micro-batches', 4, '-o', path, *flags)
        return path

    def explain(self, what, plan, *more):
        return json.loads(self.succeed('explain', what, *more, '--plan', plan, '--json').out)

    def refuse(self, code, *words, exit=1):
        """Checks a refusal, with --json on standard output too."""
        outcome = common.windlass(*words, '--json')
        self.assertEqual(outcome.code, exit, outcome.err)
        error = json.loads(outcome.out)
        self.assertEqual(set(error), {'error', 'exit'})
        self.assertEqual((error['error']['code'], error['exit']), (code, exit))
        self.assertIn(error['error']['message'], outcome.err)
        return outcome.err


class SchemaTest(PlanCase):
    def test_plans_are_as_the_schema_says(self):
        schema = json.loads((common.ROOT / 'lib' / 'Dialect' / 'Plan' / 'File' / 'plan.schema.json').read_text())
        for strategy in ('zero3*megatron=2', 'zero1', 'auto'):
            plan = json.loads(self.make(strategy=strategy).read_text())
            self.assertEqual(plan['claims'] is not None, strategy == 'auto')
            self.assertTrue(common.conforms(plan, schema), strategy)
        # Nothing else is refused because of its form.
        plan = json.loads(self.make().read_text())
        for change in (lambda it: it.update(version=5), lambda it: it.update(defaults={}), lambda it: it['mesh'].update(data_axis='data'),
                       lambda it: it['mesh']['axes'][0].pop('role'), lambda it: it['mesh']['axes'][0].update(role='stage'),
                       lambda it: it['parameters'][WEIGHT].update(master='[16, 64] on tape'), lambda it: it['parameters'][WEIGHT].update(master=None)):
            edited = json.loads(json.dumps(plan))
            change(edited)
            self.assertFalse(common.conforms(edited, schema), edited['mesh'])
            file = self.folder / 'edited.json'
            file.write_text(json.dumps(edited))
            self.assertEqual(common.windlass('emit', self.model, '--plan', file, '-o', self.folder / 'project').code, 1)


class ExplainTest(PlanCase):
    def test_an_operator(self):
        plan = self.make()
        [op] = self.explain(MATMUL, plan, self.model)['operators']
        self.assertEqual((op['id'], op['kind'], op['function'], op['runs_per_step']), (MATMUL, 'matmul', 'microbatch', 2))
        self.assertEqual(op['repeat'], {'class': 'transformer.h', 'index': 0})
        factors = {factor['name']: (factor['size'], factor['size_per_rank'], factor['kind'], factor['axes']) for factor in op['factors']}
        self.assertEqual(factors, {'m0': (SAMPLES, SAMPLES, 'parallel', []), 'm1': (TOKENS, TOKENS, 'parallel', []),
                                   'n0': (HIDDEN, HIDDEN // 2, 'parallel', ['model']), 'k0': (WIDTH, WIDTH, 'reduction', [])})
        weight = op['operands'][1]
        self.assertEqual(weight['name'], f"parameter '{WEIGHT}'")
        self.assertEqual((weight['layout'], weight['bytes_per_rank']), (f'[{WIDTH}, {HIDDEN}:model]', 4 * WIDTH * HIDDEN // 2))
        # Half of what two ranks gather, in each of two micro-batches.
        [gather] = weight['reshards']
        self.assertEqual([step['collective'] for step in gather['steps']], ['all-gather'])
        self.assertEqual(gather['bytes_sent_per_step'], 2 * 4 * WIDTH * HIDDEN // 2 // 2)
        self.assertEqual(op['results'][0]['local_type'], f'f32[{SAMPLES}, {TOKENS}, {HIDDEN // 2}]')
        self.assertEqual(op['adjoints'], [f'{MATMUL}.grad.lhs', f'{MATMUL}.grad.rhs'])
        self.assertRegex(op['axes'][0]['role'], 'replicas')
        self.assertRegex(op['axes'][1]['role'], 'splits n0')

    def test_segments(self):
        """The bytes and FLOPs of recomputed segments add up to the plan's totals; a kept segment says what recomputing it would free."""
        self.make()
        needs = json.loads(self.succeed('plan', self.model, '--cluster', 'cpu:1', '--strategy', 'ddp', '--micro-batches', 1, '--json').out)['bytes_per_device']
        path, attention = self.folder / 'recompute.json', 'transformer.h.1.attn.attention.0'
        limit = needs['arena'] + needs['reserve']['total']
        for halves in (('mlp', 'kept'), ('halves', 'mlp'), ('block', 'halves')):
            self.succeed('plan', self.model, '--cluster', 'cpu:1', '--strategy', 'ddp', '--micro-batches', 1, '--memory-limit', limit, '-o', path)
            plan = json.loads(path.read_text())
            self.assertEqual(set(plan['segments'].values()), {'kept'})
            plan['segments'] = dict(zip(('transformer.h.0', 'transformer.h.1'), halves))
            path.write_text(json.dumps(plan))
            with self.subTest(halves):
                ops = self.explain('transformer.h.*', path, self.model)['operators']
                found = {(op['segment']['block'], op['segment']['part']): op['segment'] for op in ops if op['segment']}
                recomputed = {key: segment for key, segment in found.items() if segment['recomputed']}
                parts = {'kept': [], 'mlp': ['mlp'], 'halves': ['attention', 'mlp'], 'block': [None]}
                self.assertEqual(set(recomputed), {(block, part) for block, label in plan['segments'].items() for part in parts[label]})
                self.assertTrue(all(segment['stash_bytes_freed'] > 0 and segment['flops_per_micro_batch'] > 0 for segment in found.values()))
                [op, *copies] = self.explain(attention, path, self.model)['operators']
                self.assertEqual([copy['id'] for copy in copies], [attention + '.recompute'] * op['segment']['recomputed'])
                text = self.succeed('explain', attention, self.model, '--plan', path).out
                verb = 'recomputed, which frees' if op['segment']['recomputed'] else 'kept; to recompute it would free'
                self.assertIn(f"  segment: attention of transformer.h.1, {verb} {op['segment']['stash_bytes_freed']} bytes of a rank's stash", text)
        [op] = self.explain('lm_head.matmul.0', path, self.model)['operators']
        self.assertIsNone(op['segment'])
        limited = ('plan', self.model, '--cluster', 'cpu:1', '--strategy', 'ddp', '--micro-batches', 1, '--json', '--memory-limit')
        for missing in (1, 2048, 4096):
            said = json.loads(self.succeed(*limited, limit - missing, '-o', path).out)['recompute']
            ops = self.explain('transformer.h.*', path, self.model)['operators']
            recomputed = {(op['segment']['block'], op['segment']['part']): op['segment'] for op in ops if op['segment'] and op['segment']['recomputed']}
            self.assertEqual(sum(segment['stash_bytes_freed'] for segment in recomputed.values()), said['stash_bytes_before'] - said['stash_bytes'])
            self.assertEqual(sum(segment['flops_per_micro_batch'] for segment in recomputed.values()), said['flops'])
            self.assertGreater(said['flops'], 0)

    def test_partial_results_are_reduced_behind_the_operator(self):
        plan = self.make()
        [op] = self.explain('transformer.h.1.mlp.matmul.1', plan, self.model)['operators']
        [reshard] = op['results'][0]['reshards']
        self.assertEqual(reshard['from'], f'[{SAMPLES}, {TOKENS}, {WIDTH}] sum(model)')
        self.assertEqual(reshard['bytes_sent_per_step'], 2 * 4 * SAMPLES * TOKENS * WIDTH)

    def test_a_loss_that_was_taken_apart(self):
        plan = self.make(strategy='megatron')
        loss, untied = 'node_cross_entropy_loss.softmax_cross_entropy.0', self.small_gpt('untied.onnx', width=WIDTH, tied=False)
        self.succeed('plan', untied, '--cluster', 'cpu:2', '--strategy', 'megatron', '-o', plan)
        parts = self.explain(loss + '*', plan, untied)['operators']
        self.assertTrue(all(part['id'].startswith(loss) for part in parts))
        kinds = [part['kind'] for part in self.explain(loss, plan, untied)['operators']]
        self.assertEqual((kinds.count('softmax_cross_entropy'), kinds.count('reduce')), (1, 3))

    def test_a_parameter(self):
        plan = self.make()
        [row] = self.explain(WEIGHT, plan, self.model)['parameters']
        self.assertEqual({name: copy['bytes_per_rank'] for name, copy in row['copies'].items()}, dict.fromkeys(('compute', 'gradient', 'master'), WIDTH * HIDDEN))
        self.assertEqual([reshard['steps'][0]['collective'] for reshard in row['reshards']], ['all-gather', 'all-gather', 'reduce-scatter'])

    def test_globs(self):
        plan = self.make()
        found = self.explain('transformer.h.*.mlp.matmul.?', plan, self.model)['operators']
        self.assertEqual([op['id'] for op in found], [f'transformer.h.{layer}.mlp.matmul.{i}' for layer in (0, 1) for i in (0, 1)])

    def test_an_operator_that_was_taken_apart(self):
        """The squares of split weights and those of whole weights are summed apart."""
        plan = self.make('plan.json', '--clip', strategy='megatron=4')
        found = [op['id'] for op in self.explain('update/square_sum', plan, self.model)['operators']]
        self.assertIn('update/square_sum', found)
        self.assertRegex(' '.join(found), r'update/square_sum\.partial\.\d')
        self.assertTrue(all(id.startswith('update/square_sum') for id in found), found)

    def test_text_says_what_json_says(self):
        plan = self.make()
        text = self.succeed('explain', MATMUL, self.model, '--plan', plan).out
        for part in (MATMUL, 'matmul in @microbatch', 'split over model: 32 a rank', 'all-gather over data (2 ranks); a rank sends 2048 bytes a step', 'adjoints'):
            self.assertIn(part, text)

    def test_without_the_model_the_file_speaks(self):
        plan = self.make()
        rows = self.explain(MATMUL, plan)['operators']
        self.assertEqual([row['function'] for row in rows], ['evaluate', 'microbatch'])
        self.assertEqual(rows[0]['split'], {'n0': ['model']})
        self.assertIn('give MODEL too', self.succeed('explain', MATMUL, '--plan', plan).out)
        self.assertEqual(self.explain(WEIGHT, plan)['parameters'][0]['master'], f'[{WIDTH}:data, {HIDDEN}:model]')

    def test_what_is_not_there(self):
        plan = self.make()
        for more in ((), (self.model,)):
            self.assertIn(f"the nearest is '{MATMUL}'", self.refuse('WL0202', 'explain', 'transformer.h.0.mlp.matmull.0', *more, '--plan', plan))
            self.assertIn('is not a glob', self.refuse('WL0202', 'explain', '[', *more, '--plan', plan))
        self.refuse('WL0303', 'explain', MATMUL, self.small_gpt('other.onnx', width=48), '--plan', plan)
        self.refuse('WL0302', 'explain', MATMUL, '--plan', self.model)
        for words in (('explain', '--plan', plan), ('explain', MATMUL, self.model), ('explain', MATMUL, '--plan', plan, '--cluster', 'cpu:2')):
            self.refuse('WL0001', *words, exit=2)


class DiffTest(PlanCase):
    def test_equal(self):
        plan = self.make()
        self.assertEqual(self.succeed('diff', plan, plan).out, '')
        said = json.loads(self.succeed('diff', plan, plan, '--json').out)
        self.assertEqual((said['equal'], said['differences']), (True, []))
        self.assertEqual(sum(group['changed'] for group in said['summary']['groups']), 0)

    def test_summary(self):
        first, second = self.make('first.json', layers=3), self.make('second.json', layers=3, strategy='ddp')
        rows = json.loads(common.run([common.WINDLASS, 'diff', first, second, '--json']).out)
        changed = {(row['section'], name) for row in rows['differences'] if row['section'].startswith('@') for name in row['names']}
        groups = {group['group']: group for group in rows['summary']['groups']}
        self.assertEqual(sum(group['changed'] for group in groups.values()), len(changed))
        layers = sum('transformer.h.' in name for _, name in changed)
        self.assertEqual(groups['transformer.h.*']['changed'], layers)
        self.assertEqual([group for group in groups if '*' in group], ['transformer.h.*'])
        self.assertIn('lm_head', groups)
        # What the plans do not claim follows from a model: the same figures that simulate and plan give for each.
        text = common.run([common.WINDLASS, 'diff', first, second]).out
        self.assertIn('  time: not said by the plans; name the model behind them\n', text)
        told = json.loads(common.run([common.WINDLASS, 'diff', first, second, self.model, '--json']).out)['summary']
        for plan, which in ((first, 'first'), (second, 'second')):
            alone = json.loads(self.succeed('simulate', self.model, '--plan', plan, '--json').out)
            self.assertEqual(told[which]['seconds'], alone['predicted_seconds'])
            self.assertGreater(told[which]['bytes'], 0)
        self.assertEqual((told['first']['mesh'], told['second']['mesh']), ('data=2 x model=2', 'data=4'))
        text = common.run([common.WINDLASS, 'diff', first, second, self.model]).out
        self.assertRegex(text, r'\Asummary\n  time: [\d.]+ ms -> [\d.]+ ms \([\d.]+ % (less|more)\)\n  memory: [\d.]+ [KM]iB -> [\d.]+ [KM]iB'
                               rf'( \([\d.]+ % (less|more)\))?\n  mesh: data=2 x model=2 -> data=4\n  operators: {len(changed)} of \d+ differ\n')
        self.assertIn(f"    transformer.h.*: {layers} of {groups['transformer.h.*']['operators']}\n", text)

    def test_what_differs_alike_in_layers_is_said_once(self):
        first, second = self.make('first.json', layers=3), self.make('second.json', '--clip', layers=3, strategy='zero1*megatron=2')
        outcome = common.run([common.WINDLASS, 'diff', first, second, '--json'])
        self.assertEqual((outcome.code, outcome.err), (1, ''))
        rows = json.loads(outcome.out)['differences']
        settings = [row['fields'] for row in rows if row['section'] == 'settings']
        self.assertEqual(settings, [[{'field': 'clip', 'first': 'false', 'second': 'true'}]])
        weights = [row for row in rows if WEIGHT in row['names']]
        self.assertEqual([row['names'] for row in weights], [[WEIGHT.replace('h.0', f'h.{layer}') for layer in range(3)]])
        self.assertIn({'field': 'compute', 'first': '[16:data, 64:model]', 'second': '[16, 64:model]'}, weights[0]['fields'])
        outcome = common.run([common.WINDLASS, 'diff', first, second])
        self.assertEqual(outcome.code, 1)
        self.assertIn('  transformer.h.{0-2}.mlp.c_fc.weight (3)\n    compute: [16:data, 64:model] -> [16, 64:model]\n', outcome.out)
        self.assertEqual(common.run([common.WINDLASS, 'diff', first, second, '-q']).out, '')

    def test_each_part(self):
        path = self.make()
        good = json.loads(path.read_text())
        for change, expected in (
                (lambda plan: plan.update(bucket_bytes=1), ('plan', [], 'bucket_bytes', '26214400', '1')),
                (lambda plan: plan['model'].update(name='other'), ('plan', [], 'model', good['model']['name'], 'other')),
                (lambda plan: plan['settings']['no_decay'].pop(0), ('settings', [], 'no_decay', good['settings']['no_decay'][0], None)),
                (lambda plan: plan['settings'].update(lr_scales={WEIGHT: 0.5}), ('settings', [], 'lr_scales', None, f'{WEIGHT}=0.5')),
                (lambda plan: plan['mesh'].update(device_order=[3, 2, 1, 0]), ('mesh', [], 'device_order', '0, 1, 2, 3', '3, 2, 1, 0')),
                (lambda plan: plan['mesh']['axes'][1].update(role='expert'), ('mesh', [], 'roles', 'data: replica, model: model', 'data: replica, model: expert')),
                (lambda plan: plan['parameters'][WEIGHT].update(master='[16, 64:model] on host'),
                 ('parameters', [WEIGHT], 'master', '[16:data, 64:model]', '[16, 64:model] on host')),
                (lambda plan: plan['parameters'][WEIGHT].update(master='[16, 64]'), ('parameters', [WEIGHT], 'master', '[16:data, 64:model]', '[16, 64]')),
                (lambda plan: plan['parameters'].pop(WEIGHT), ('parameters', [WEIGHT], 'parameter', 'there', None)),
                (lambda plan: plan['functions']['microbatch']['operators'][MATMUL].update(split={}), ('@microbatch', [MATMUL], 'split', 'n0:model', 'none')),
                (lambda plan: plan['functions']['update']['operators'].clear(), ('@update',)),
                (lambda plan: plan['functions']['microbatch']['results'].__setitem__(0, '[] sum(model)'), ('@microbatch', [], 'result 0', '[]', '[] sum(model)'))):
            edited = json.loads(json.dumps(good))
            change(edited)
            other = self.folder / 'other.json'
            other.write_text(json.dumps(edited))
            outcome = common.run([common.WINDLASS, 'diff', path, other, '--json'])
            self.assertEqual(outcome.code, 1, outcome.err)
            found = [(row['section'], row['names'], field['field'], field['first'], field['second'])
                     for row in json.loads(outcome.out)['differences'] for field in row['fields']]
            if len(expected) > 1:
                self.assertEqual(found, [expected])
            else:
                self.assertTrue(found and all(row[0] == expected[0] for row in found), found)

    def test_what_is_no_plan(self):
        plan = self.make()
        self.refuse('WL0302', 'diff', plan, self.model)
        self.refuse('WL0302', 'diff', self.folder / 'none.json', plan)
        self.refuse('WL0001', 'diff', plan, exit=2)
        old = self.folder / 'old.json'
        old.write_text(json.dumps(dict(json.loads(plan.read_text()), version=1)))
        self.assertIn('version is 1, of an older windlass, but this one reads version 8: plan again with this one', self.refuse('WL0302', 'diff', plan, old))


class PinTest(PlanCase):
    def test_pins_hold_and_are_kept(self):
        pins = ('transformer.h.*.mlp.matmul.0=whole', f'{WEIGHT}=master:[16, 64]', f'{WEIGHT}=compute:[16, 64:model]')
        flags = [word for pin in pins for word in ('--pin', pin)]
        path = self.make('pinned.json', *flags, strategy='zero1*megatron=2')
        plan = json.loads(path.read_text())
        self.assertEqual(plan['settings']['pins'], sorted(pins))
        for function in ('microbatch', 'evaluate'):
            self.assertFalse(plan['functions'][function]['operators'].get(MATMUL, {'split': {}})['split'])
        self.assertEqual((plan['parameters'][WEIGHT]['master'], plan['parameters'][WEIGHT]['compute']), ('[16, 64]', '[16, 64:model]'))
        # Pins in another order give the same plan, and the same program.
        again = self.make('again.json', *flags[2:], *flags[:2], strategy='zero1*megatron=2')
        self.assertEqual(again.read_bytes(), path.read_bytes())
        self.assertEqual(self.explain(MATMUL, path, self.model)['operators'][0]['pins'], [pins[0]])
        self.assertIn(f'  pinned: {pins[1]}\n', self.succeed('explain', WEIGHT, self.model, '--plan', path).out)
        self.succeed('emit', self.model, '--plan', path, *flags, '-o', self.folder / 'project')
        self.assertIn('leave one of them out', self.refuse('WL0003', 'emit', self.model, '--plan', path, '--strategy', 'ddp', '-o', self.folder / 'none'))
        self.assertIn('made with other pins', self.refuse('WL0003', 'emit', self.model, '--plan', path, '--pin', pins[0], '-o', self.folder / 'none'))

    def test_edits_do_not_contradict_them(self):
        path = self.make('pinned.json', '--pin', 'transformer.h.*.mlp.matmul.0=n0:model', '--pin', f'{WEIGHT}=master:[16, 64:model]', strategy='zero1*megatron=2')
        good = json.loads(path.read_text())
        split = good['functions']['microbatch']['operators'][MATMUL]
        self.assertEqual(split['split'], {'n0': ['model']})
        for change in (lambda plan: plan['functions']['microbatch']['operators'][MATMUL].update(split={'m0': ['model']}, layouts=['[4:model, 8, 64]']),
                       lambda plan: plan['parameters'][WEIGHT].update(master='[16, 64:model+data]'),
                       lambda plan: plan['settings']['pins'].append('nobody=whole')):
            edited = json.loads(json.dumps(good))
            change(edited)
            path.write_text(json.dumps(edited))
            self.refuse('WL0307', 'emit', self.model, '--plan', path, '-o', self.folder / 'none')
            if not edited['settings']['pins'][-1].startswith('nobody'):
                edited['settings']['pins'] = []
                path.write_text(json.dumps(edited))
                self.succeed('emit', self.model, '--plan', path, '-o', self.folder / 'project')

    def test_wrong_ones(self):
        model = self.small_gpt(tokens=TOKENS, width=WIDTH, vocabulary=32)
        plan = ('plan', model, '--cluster', 'cpu:4', '--micro-batches', 2)
        for pin, says in (('nobody=whole', 'matches nothing'), (f'{MATMUL}=', 'PATTERN=VALUE'), ('=whole', 'PATTERN=VALUE'), (f'{MATMUL}=q0:batch', "no factor 'q0'"),
                          (f'{MATMUL}=n0:bach', "nearest is 'batch'"), (f'{MATMUL}=n0:batch,k0:batch', 'twice'), (f'{MATMUL}=n0:data', 'carries the replicas'),
                          (f'{MATMUL}=n0:3*batch', '3 blocks'), (f'{MATMUL}=[4, 8]', 'dims'), (f'{WEIGHT}=master:[16, 64] sum(batch)', 'only as a gradient'),
                          ('transformer.h.0.mlp.matmull.0=whole', f"nearest is '{MATMUL}'"), ('[=whole', 'not a glob'), ('x' * 100000 + '=whole', 'matches nothing')):
            for strategy in ('ddp', 'auto'):
                with self.subTest(pin[:40], strategy=strategy):
                    self.assertIn(says, self.refuse('WL0307', *plan, '--strategy', strategy, '--pin', pin))


class AnnotationsTest(PlanCase):
    """Plans as ONNX sharding annotations, and back as pins; on an exporter's model, which states the shapes of values."""
    BLOCK = 'model.transformer.h.0.'
    WEIGHT = BLOCK + 'mlp.c_fc.weight'
    PINS = ('--pin', f'{WEIGHT}=compute:[96:data, 384]', '--pin', 'model.transformer.wpe.weight=compute:[2*32:model, 96]', '--pin', f'{BLOCK}add.0=[4, 64, 2*48:model]')

    def export(self, *flags, model=common.MODELS / 'gpt2-tiny' / 'model.onnx'):
        self.model = model
        self.words = ('--cluster', 'cpu:4', '--strategy', 'zero1*megatron=2', '--micro-batches', 4)
        self.first, annotated = self.folder / 'first.json', self.folder / 'annotated.onnx'
        self.succeed('plan', self.model, *self.words, *flags, '-o', self.first, '--export-onnx', annotated)
        return annotated

    def shardings(self, path):
        model = onnx.load(str(path), load_external_data=False)
        [configuration] = model.configuration
        self.assertEqual((configuration.name, configuration.num_devices, model.ir_version), ('windlass', 4, 11))
        found = {}
        for node in model.graph.node:
            for device in node.device_configurations:
                self.assertEqual(device.configuration_id, 'windlass')
                for spec in device.sharding_spec:
                    self.assertIn(spec.tensor_name, [*node.input, *node.output])
                    groups = {entry.key: list(entry.value) for entry in spec.index_to_device_group_map}
                    found[spec.tensor_name] = ([groups.get(index, [index]) for index in spec.device],
                                               {dim.axis: [(simple.dim_value, simple.num_shards) for simple in dim.simple_sharding] for dim in spec.sharded_dim})
        return found

    def test_what_is_written(self):
        annotated = self.export(*self.PINS)
        found = self.shardings(annotated)
        # Ranks count through the last axis first: 0 and 1 are the first group of `data`, 0 and 2 the first members of `model`.
        self.assertEqual(found[self.WEIGHT], ([[0, 1], [2, 3]], {0: [(96, 2)]}))
        self.assertEqual(found['model.transformer.wpe.weight'], ([[0, 2], [1, 3]], {0: [(2, 1), (32, 2)]}))
        self.assertEqual(found[self.BLOCK + 'ln_1.weight'], ([[0, 1, 2, 3]], {}))
        self.assertIn(([[0, 2], [1, 3]], {2: [(2, 1), (48, 2)]}), found.values())
        # Nothing else has changed.
        first, second = (onnx.load(str(path)) for path in (self.model, annotated))
        second.ir_version = first.ir_version
        del second.configuration[:]
        for node in second.graph.node:
            del node.device_configurations[:]
        self.assertEqual(first.SerializeToString(deterministic=True), second.SerializeToString(deterministic=True))

    def test_round_trip(self):
        for pins in ((), self.PINS):
            with self.subTest(pins=pins):
                annotated, second = self.export(*pins), self.folder / 'second.json'
                self.succeed('plan', annotated, *self.words, '--onnx-pins', 'windlass', '-o', second)
                kept = json.loads(second.read_text())['settings']['pins']
                self.assertGreater(len([pin for pin in kept if '=[' in pin]), 20)
                self.assertGreater(len([pin for pin in kept if '=compute:[' in pin]), 20)
                for pin in pins[1::2]:
                    self.assertIn(pin, kept)
                rows = json.loads(common.run([common.WINDLASS, 'diff', self.first, second, '--json']).out)['differences']
                found = {(row['section'], name, field['field']) for row in rows for field in row['fields'] for name in row['names'] or ['']}
                if pins:
                    # Pinned values may determine others; those that were annotated keep their annotations.
                    annotations = {pin.split('=')[0] for pin in kept if '=[' in pin}
                    found = {each for each in found if each[0] == 'parameters' or each[0] == '@microbatch' and each[1] in annotations and each[2] == 'result 0'}
                    self.assertEqual(found, set())
                else:
                    self.assertEqual(found, {('settings', '', 'pins')})
                self.succeed('emit', annotated, '--plan', second, '-o', self.folder / 'project')
        # Without the flag they change nothing.
        self.succeed('plan', annotated, *self.words, '-o', second)
        self.assertEqual(json.loads(second.read_text())['settings']['pins'], [])

    def test_external_data_stay_references(self):
        annotated = self.export(model=self.small_gpt(tokens=TOKENS, width=WIDTH, vocabulary=32, external=True))
        tensors = onnx.load(str(annotated), load_external_data=False).graph.initializer
        self.assertTrue(any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in tensors))
        self.succeed('check', annotated)

    def test_refusals(self):
        annotated = self.export()
        again = ('plan', annotated, *self.words, '--export-onnx', self.folder / 'again.onnx')
        self.assertIn('already', self.refuse('WL0308', *again))
        self.assertIn("it has 'windlass'", self.refuse('WL0308', 'plan', annotated, *self.words, '--onnx-pins', 'others'))
        self.assertIn('is for 4 devices', self.refuse('WL0308', 'plan', annotated, '--cluster', 'cpu:2', '--strategy', 'ddp', '--onnx-pins', 'windlass'))
        self.assertIn('needs a named strategy', common.windlass('plan', annotated, '--cluster', 'cpu:4', '--onnx-pins', 'windlass').err)
        self.refuse('WL0307', 'plan', annotated, *self.words, '--onnx-pins', 'windlass', '--pin', f'{self.WEIGHT}=compute:[96, 384]')
        self.assertIn('leave one of them out', self.refuse('WL0003', 'emit', annotated, '--plan', self.first, '--onnx-pins', 'windlass', '-o', self.folder / 'none'))


class SettingsTest(PlanCase):
    def test_a_plan_says_what_it_was_made_for(self):
        """A program is the same whether it is made by flags or by the plan that was made by them."""
        model, plan = self.small_gpt(tokens=TOKENS, width=WIDTH, vocabulary=32, layers=2), self.folder / 'plan.json'
        for flags in (('--freeze', '*wpe*'), ('--freeze', '*.h.0.*', '--no-decay', '*.c_fc.weight'), ('--optimizer', 'sgd', '--clip'), ('--micro-batches', 4),
                      ('--optimizer', 'lamb', '--ema'), ('--optimizer', 'muon'), ('--optimizer', 'adafactor'),
                      ('--optimizer', 'lion', '--lr-scale', '*wpe*=0.1', '--lr-scale', '*.h.*=3', '--decay-scale', '*.bias=1', '--decay-scale', '*=0.5')):
            for strategy in ('zero1', 'auto'):
                with self.subTest(flags=flags, strategy=strategy):
                    words = ('--cluster', 'cpu:2', '--strategy', strategy, *flags)
                    direct, planned = self.folder / f'direct-{strategy}', self.folder / f'planned-{strategy}'
                    self.succeed('emit', model, *words, '-o', direct)
                    self.succeed('plan', model, *words, '-o', plan)
                    self.succeed('emit', model, '--plan', plan, '-o', planned)
                    for path in sorted(direct.rglob('*')):
                        if path.is_file() and path.name != 'plan.cert':
                            self.assertEqual(path.read_bytes(), (planned / path.relative_to(direct)).read_bytes(), path)


class ErrorsAsJsonTest(PlanCase):
    def test_every_subcommand(self):
        missing = self.folder / 'none'
        for words in (('check', missing), ('plan', missing, '--cluster', 'cpu:1'), ('emit', missing, '-o', self.folder / 'project'),
                      ('train', missing), ('report', missing), ('checkpoint', 'inspect', missing)):
            with self.subTest(words[0]):
                outcome = common.windlass(*words, '--json')
                error = json.loads(outcome.out)
                self.assertEqual(error['exit'], outcome.code)
                self.assertIn(f"[{error['error']['code']}]", outcome.err)
        self.refuse('WL0001', 'frobnicate', exit=2)
        self.refuse('WL0001', 'plan', self.small_gpt(), exit=2)

    def test_the_place_is_named(self):
        model = self.small_gpt(tokens=TOKENS, width=WIDTH, vocabulary=32)
        plan = self.make()
        edited = json.loads(plan.read_text())
        edited['functions']['microbatch']['operators'][MATMUL].update(split={}, layouts=['[4, 8, 64] sum(model)'])
        plan.write_text(json.dumps(edited))
        outcome = common.windlass('emit', self.model, '--plan', plan, '-o', self.folder / 'project', '--json')
        self.assertIn('mlp', json.loads(outcome.out)['error']['at'])

    def test_programs_say_it_themselves(self):
        outcome = common.windlass('train', self.small_gpt(), '--data', self.folder / 'none', '--bytes', '--steps', 1, '--json')
        error = json.loads(outcome.out)
        self.assertEqual((error['error']['code'], error['exit'], outcome.code), ('WL0601', 1, 1))


if __name__ == '__main__':
    common.main()
