"""Clusters: presets and files, what they make of plans, and what is refused, with the key that is wrong."""

import copy
import json
import re

import common
from bad_input import case

SCHEMA = json.loads((common.ROOT / 'lib' / 'Cluster' / 'cluster.schema.json').read_text())
PRESETS = ('cpu:3', 'v100-16g:8', 'v100-32g:2x4', 'a100-40g:4x8', 'a100-80g:1', 'h100:2', 'h200:2x8', 'b200:2x8', 'h100-pcie:2x4', 'l4:3x1', 'rtx4090:2')
SECONDS = 10
# (key path, new value, the message); a path that ends in + adds a key.
WRONG = (
    ('version', 3, 'version is 3, but this windlass reads versions 1 to 2'),
    ('version', 1, 'link_tiers[0].efficiency is no known key'),
    ('version', 0, 'version must be an integer from 1'),
    ('devicetypes+', {}, "devicetypes is no known key; the nearest is 'device_types'"),
    ('device_types', {}, 'device_types is empty'),
    ('device_types.big.memory_bytes', 0, 'device_types.big.memory_bytes must be an integer from 1'),
    ('device_types.big.memory_bytes', -1, 'device_types.big.memory_bytes must be an integer from 1'),
    ('device_types.big.memory_bytes', 2**63, 'device_types.big.memory_bytes must be an integer from 1'),
    ('device_types.big.memory+', 5, "device_types.big.memory is no known key; the nearest is 'memory_bytes'"),
    ('device_types.big.peak_flops_per_s.fp32+', 1, "device_types.big.peak_flops_per_s.fp32 is no known key; the nearest is 'f32'"),
    ('device_types.big.peak_flops_per_s.f32', 1e300, 'device_types.big.peak_flops_per_s.f32 must be an integer from 1'),
    ('device_types.big.backend', 'gpu', "device_types.big.backend is 'gpu', but back ends are 'cpu' and 'cuda'"),
    ('device_types.other+', {'backend': 'cuda', 'memory_bytes': 1}, 'device_types.other is used by no host'),
    ('device_types.big.product_efficiency+', 1.01, 'device_types.big.product_efficiency must be a number above 0 and at most 1'),
    ('device_types.big.attention_efficiency+', 0, 'device_types.big.attention_efficiency must be a number above 0'),
    ('hosts', [], 'hosts is empty'),
    ('hosts', {}, 'hosts must be a list'),
    ('hosts.0.count', 0, 'hosts[0].count must be an integer from 1'),
    ('hosts.0.count', 25000, 'hosts make more than 65536 devices'),
    ('hosts.0.device_type', 'bg', "hosts[0].device_type is 'bg', which device_types do not have; the nearest is 'big'"),
    ('hosts.0.devices', 6, 'link_tiers[0].devices is 4, which cuts a host of 6 devices in two'),
    ('hosts.0.device_link.latency_s', -1, 'hosts[0].device_link.latency_s must be a number above 0'),
    ('hosts.0.device_link.latency+', 1, "hosts[0].device_link.latency is no known key; the nearest is 'latency_s'"),
    ('hosts.0.flops_per_s+', 0, 'hosts[0].flops_per_s must be an integer from 1'),
    ('hosts.0.memory_bandwidth_bytes_per_s+', -1, 'hosts[0].memory_bandwidth_bytes_per_s must be an integer from 1'),
    ('link_tiers', None, 'link_tiers join 1 of 8 devices'),
    ('link_tiers.0.latency_s', 0, 'link_tiers[0].latency_s must be a number above 0'),
    ('link_tiers.0.bandwidth_bytes_per_s', 0, 'link_tiers[0].bandwidth_bytes_per_s must be an integer from 1'),
    ('link_tiers.0.devices', 3, 'link_tiers[0].devices is 3, which does not divide the 8 devices'),
    ('link_tiers.0.efficiency', 1.5, 'link_tiers[0].efficiency must be a number above 0 and at most 1'),
    ('link_tiers.0.efficiency', 0.5, 'link_tiers[0].partial_efficiency is 0.75, more than the efficiency of 0.50'),
    ('link_tiers.0.in_switch_efficiency', 3, 'link_tiers[0].in_switch_efficiency must be a number above 0 and at most 2'),
    ('link_tiers.0.nics', 4, 'link_tiers[0].nics is 4, but the tier joins devices of one host'),
    ('link_tiers.1.nics', 0, 'link_tiers[1].nics must be an integer from 1 to 65536'),
    ('link_tiers.1.bandwidth_bytes_per_s', 2 * 10**11, 'link_tiers[1].bandwidth_bytes_per_s is 200000000000, more than the 100000000000 of the tier before'),
    ('link_tiers.1.name', 'link', "link_tiers[1].name is 'link', as that of an earlier tier"),
    ('link_tiers.1.devices', 4, 'link_tiers[1].devices is 4, but must be a multiple of the 4'),
    ('device_order', [0] * 8, 'device_order[1] must be a number from 0 to 7 that does not come before'),
    ('device_order', [1], 'device_order has 1 entries, but there are 8 devices'),
    ('sources.a+', 5, 'sources.a must be a string'),
)


def edited(document, path, value):
    """A copy of `document` with the member at `path` set."""
    changed = copy.deepcopy(document)
    *folders, last = path.rstrip('+').split('.')
    at = changed
    for name in folders:
        at = at[int(name)] if isinstance(at, list) else at.setdefault(name, {})
    assert isinstance(at, list) or path.endswith('+') != (last in at), path
    at[int(last) if isinstance(at, list) else last] = value
    return changed


class ClusterTest(common.Case):
    GOOD = {'version': 2, 'device_types': {'big': {'backend': 'cuda', 'memory_bytes': 10**10, 'peak_flops_per_s': {'f32': 10**12}}},
            'hosts': [{'count': 2, 'devices': 4, 'device_type': 'big', 'memory_bytes': 10**10, 'device_link': {'latency_s': 1e-5}}],
            'link_tiers': [{'name': 'link', 'devices': 4, 'latency_s': 2.5e-6, 'bandwidth_bytes_per_s': 10**11, 'efficiency': 0.8, 'partial_efficiency': 0.75,
                            'in_switch_efficiency': None, 'nics': None},
                           {'name': 'net', 'devices': 8, 'bandwidth_bytes_per_s': None, 'nics': 2}],
            'device_order': [7, 6, 5, 4, 3, 2, 1, 0]}

    def setUp(self):
        super().setUp()
        self.model, self.plan = self.small_gpt(), self.folder / 'plan.json'

    def write(self, document, name='cluster.json'):
        return case.write(self.folder / name, document if isinstance(document, str) else json.dumps(document))

    def explain(self, cluster):
        return self.succeed('explain', '--cluster', cluster).out

    def refuse(self, code, *words):
        outcome = common.windlass(*words)
        self.assertEqual(outcome.code, 3 if code == 'WL0305' else 1, outcome.err)
        self.assertRegex(outcome.err, rf'\Awindlass: error: .* \[{code}\]\n\Z')
        self.assertLess(outcome.processor_seconds, SECONDS)
        return outcome.err

    def test_presets_are_files_too(self):
        for preset in PRESETS:
            with self.subTest(preset):
                text = self.explain(preset)
                document = json.loads(text)
                self.assertTrue(common.conforms(document, SCHEMA))
                self.assertIn('sources', document)
                path = self.write(text)
                self.assertEqual(self.explain(path), text)
                devices = sum(host['count'] * host['devices'] for host in document['hosts'])
                flags = (self.model, '--micro-batches', devices, '-o', self.plan)
                self.succeed('plan', *flags, '--cluster', preset)
                plan = self.plan.read_text()
                self.succeed('plan', *flags, '--cluster', path)
                self.assertEqual(self.plan.read_text(), plan)
                del document['sources']
                self.assertEqual(json.loads(plan)['cluster'], document)

    def test_each_wrong_value(self):
        """In a file, and in a plan."""
        self.assertTrue(common.conforms(self.GOOD, SCHEMA))
        self.succeed('plan', self.model, '--cluster', self.write(self.GOOD), '--micro-batches', 8, '-o', self.plan)
        plan = json.loads(self.plan.read_text())
        unwritten = self.folder / 'none.json'
        for path, value, says in WRONG:
            with self.subTest(path=path, value=str(value)[:30]):
                wrong = self.write(edited(self.GOOD, path, value))
                error = self.refuse('WL0301', 'plan', self.model, '--cluster', wrong, '--micro-batches', 8, '-o', unwritten)
                self.assertIn(f"cluster.json': {says}", error)
                self.assertFalse(unwritten.exists())
                if not path.startswith('sources'):
                    wrong = self.write(dict(plan, cluster=edited(plan['cluster'], path, value)), 'wrong-plan.json')
                    error = self.refuse('WL0302', 'emit', self.model, '--plan', wrong, '-o', self.folder / 'project')
                    self.assertIn(f"wrong-plan.json': cluster.{says}", error)

    def test_schema_takes_what_is_taken(self):
        accepted = refused = 0
        for label, text in case.json_damage(self.GOOD, lambda document: json.dumps(document)):
            outcome = common.windlass('explain', '--cluster', self.write(text))
            self.assertIn(outcome.code, (0, 1), outcome.err)
            twice = label.endswith(' twice')
            try:
                fits = not twice and common.conforms(json.loads(text), SCHEMA)
            except (OverflowError, ValueError):
                fits = False
            if outcome.code == 0:
                accepted += 1
                self.assertTrue(fits, f'{label}: read, but not by the schema')
            elif not fits:
                refused += 1
        print(f'{accepted} read, {refused} refused by reader and schema')
        self.assertGreater(accepted, 20)
        self.assertGreater(refused, 200)

    def test_memory_of_devices_is_the_limit(self):
        small = edited(self.GOOD, 'device_types.big.memory_bytes', 10**5)
        error = self.refuse('WL0305', 'plan', self.model, '--cluster', self.write(small), '--micro-batches', 8)
        self.assertIn('the limit is 100000 bytes ', error)
        self.succeed('plan', self.model, '--cluster', self.write(small), '--micro-batches', 8, '--memory-limit', '8GiB')
        # CPU ranks share their host's memory; the smallest share counts.
        cpu = {'version': 1, 'device_types': {'cpu': {'backend': 'cpu'}}, 'link_tiers': [{'name': 'all', 'devices': 4}],
               'hosts': [{'count': 1, 'devices': 2, 'device_type': 'cpu', 'memory_bytes': 10**9}, {'count': 1, 'devices': 2, 'device_type': 'cpu', 'memory_bytes': 300001}]}
        self.assertIn('the limit is 150000 bytes ', self.refuse('WL0305', 'plan', self.model, '--cluster', self.write(cpu), '--micro-batches', 4))
        out = json.loads(self.succeed('plan', self.model, '--cluster', self.write(self.GOOD), '--micro-batches', 8, '--json').out)
        self.assertEqual(out['bytes_per_device']['limit'], 10**10)
        self.assertEqual(out['cluster']['hosts'][0]['count'], 2)

    def test_plans_for_gpus(self):
        out = self.succeed('plan', self.model, '--cluster', 'a100-40g:4x8', '--micro-batches', 32, '-o', self.plan).out
        self.assertIn('4 hosts of 8 x a100-40g', out)
        for i, words in enumerate((('--plan', self.plan), ('--cluster', 'l4:1'), ('--cluster', 'h200:1', '--precision', 'bf16'))):
            project = self.folder / f'project{i}'
            self.succeed('emit', self.model, *words, '-o', project)
            self.assertIn('set(WINDLASS_BACKEND cuda ', (project / 'CMakeLists.txt').read_text())
        refused = self.refuse('WL0306', 'train', self.model, '--cluster', 'h200:1', '--data', self.model, '--steps', 1, '-o', self.folder / 'run', '-q')
        self.assertIn("runs programs on this machine's processors", refused)
        self.assertFalse((self.folder / 'run').exists())

    def test_files_of_version_1(self):
        """They are read, and the plan says what was assumed."""
        old = copy.deepcopy(self.GOOD)
        old['version'] = 1
        for tier in old['link_tiers']:
            for key in ('efficiency', 'partial_efficiency', 'in_switch_efficiency', 'nics'):
                tier.pop(key, None)
        out = self.succeed('plan', self.model, '--cluster', self.write(old), '--micro-batches', 8, '-o', self.plan).out
        self.assertIn("assumed    efficiency of tier 'link' is not in the cluster: taken as 0.8\n", out)
        self.assertIn("assumed    efficiency of tier 'net' is not in the cluster: taken as 0.96\n", out)
        self.assertEqual(json.loads(self.plan.read_text())['cluster']['version'], 2)
        # So is a plan that holds one.
        plan = self.write(dict(json.loads(self.plan.read_text()), cluster=old), 'old-plan.json')
        self.succeed('emit', self.model, '--plan', plan, '-o', self.folder / 'project')

    def test_times_of_collectives(self):
        entry = {'kind': 'all_reduce', 'bytes': 1 << 30, 'members': 16, 'members_per_host': 8}
        one = {'kind': 'all_gather', 'bytes': 1 << 30, 'members': 2, 'members_per_host': 1}
        path = self.write(json.dumps([entry, dict(one, concurrent_groups=8), dict(one, concurrent_groups=1), one]), 'collectives.json')
        words = ('explain', '--cluster', 'h100:2x8', '--collectives', path)
        found = json.loads(self.succeed(*words, '--json').out)
        self.assertEqual([(each['kind'], each['members']) for each in found], [('all_reduce', 16), *[('all_gather', 2)] * 3])
        whole, together, alone, program = (each['seconds'] for each in found)
        # Each device has a port, so groups do not share; 1 GiB in 450 GB/s would take 2.4 ms.
        self.assertGreater(whole, 2.4e-3)
        self.assertLess(whole, 10e-3)
        self.assertEqual(together, alone)
        self.assertEqual(together, program)
        table = self.succeed(*words).out
        self.assertRegex(table, r'\Akind +members +size +seconds +bus GB/s\nall_reduce +16 +1 GiB')
        for wrong, says in ((dict(entry, kind='scan'), "[0].kind is 'scan', but kinds are all_reduce, all_gather"),
                            (dict(entry, bytes=0), '[0].bytes must be an integer from 1'),
                            (dict(entry, members=1), '[0].members must be an integer from 2'),
                            (dict(entry, members=12), '[0].members is 12, which is no multiple of the 8 of a host'),
                            (dict(entry, members=32), '[0].members is 32 with 8 on a host, but there are 2 hosts'),
                            (dict(entry, members_per_host=16), '[0].members_per_host is 16, but a host has 8 devices'),
                            (dict(entry, concurrent_groups=2), '[0].concurrent_groups is 2 with 8 members on a host, but a host has 8 devices'),
                            (dict(entry, size=5), '[0].size is no known key'), (5, '[0] is no object')):
            with self.subTest(str(wrong)):
                self.assertIn(says, self.refuse_words('explain', '--cluster', 'h100:2x8', '--collectives', self.write(json.dumps([wrong]), 'wrong.json')))
        for text, says in (('{}', 'must be a list of 1 to 65536 collectives'), ('[]', 'must be a list of 1'), ('[' + '{},' * 65536 + '{}]', 'must be a list of 1'),
                           ('[', 'is no JSON')):
            self.assertIn(says, self.refuse_words('explain', '--cluster', 'h100:2x8', '--collectives', self.write(text, 'wrong.json')))

    def refuse_words(self, *words):
        outcome = common.windlass(*words)
        self.assertEqual((outcome.code, outcome.out), (2, ''), outcome.err)
        self.assertRegex(outcome.err, r'\Awindlass: error: .*\n\Z')
        return outcome.err

    def test_order_of_devices(self):
        self.succeed('plan', self.model, '--cluster', self.write(self.GOOD), '--micro-batches', 8, '-o', self.plan)
        self.assertEqual(json.loads(self.plan.read_text())['mesh']['device_order'], self.GOOD['device_order'])

    def test_what_differs_from_the_plan_is_named(self):
        document = json.loads(self.explain('cpu:2'))
        self.succeed('plan', self.model, '--cluster', self.write(document), '-o', self.plan)
        words = ('emit', self.model, '--plan', self.plan, '-o', self.folder / 'project', '--cluster')
        self.succeed(*words, 'cpu:2')
        for path, value, says in (('hosts.0.memory_bytes', 10**9, 'hosts[0].memory_bytes is '), ('hosts.0.disk_bytes', 7, 'hosts[0].disk_bytes is null, not 7'),
                                  ('link_tiers.0.name', 'x', 'link_tiers[0].name is "memory", not "x"'), ('device_order', [1, 0], 'device_order is null, not [1,0]')):
            with self.subTest(path):
                self.assertIn(says, self.refuse('WL0003', *words, self.write(edited(document, path, value))))
        self.assertIn('is 2, not 4', self.refuse('WL0003', *words, 'cpu:4'))

    def test_many_devices(self):
        outcome = self.succeed('plan', self.model, '--cluster', 'h200:8192x8', '--micro-batches', 65536, '-o', self.plan)
        self.assertLess(outcome.processor_seconds, SECONDS)
        self.assertLess(outcome.peak_bytes, 1 << 30)
        self.assertEqual(len(json.loads(self.plan.read_text())['mesh']['device_order']), 65536)
        self.refuse('WL0301', 'plan', self.model, '--cluster', 'h200:12500x8')
        self.refuse('WL0301', 'plan', self.model, '--cluster', 'cpu:100000')
        hosts = [dict(self.GOOD['hosts'][0], count=1, devices=1)] * 100000
        self.refuse('WL0301', 'plan', self.model, '--cluster', self.write(dict(self.GOOD, hosts=hosts)))

    def test_usage(self):
        for words in (('explain', 'WL0301', '--cluster', 'cpu:2'), ('explain', '--cluster'), ('explain', '--collectives', 'a.json')):
            self.assertEqual(common.windlass(*words).code, 2)


common.main()
