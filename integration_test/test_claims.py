"""What plans claim (design §7): `windlass plan --verify` accepts every plan that the search makes, refuses one of which a claim or an entry
of its certificates was changed, and an edited plan is used without claims.

    test_claims.py [FAMILY...]     of all one-layer models where none is named
"""

import copy
import hashlib
import json
import random
import re
import sys

import common
import test_search

FAMILIES = list(common.FAMILIES)
RANKS = (2, 8)
SIZES = dict(layers=3, tokens=64, batch=8, vocabulary=64)


class ClaimsCase(common.Case):
    def plan(self, model, *flags, name='plan.json', code=0):
        """Returns the outcome, the plan and its certificates."""
        path = self.folder / name
        outcome = common.windlass('plan', model, '--strategy', 'auto', '--json', '-o', path, *flags)
        self.assertEqual(outcome.code, code, outcome.err)
        return outcome, path, path.with_suffix('.cert')

    def verify(self, model, path, says=None, *flags):
        outcome = common.windlass('plan', model, '--verify', path, '--json', *flags)
        if says is None:
            self.assertEqual((outcome.code, outcome.err), (0, ''))
            return json.loads(outcome.out)
        self.assertEqual(outcome.code, 1, outcome.out)
        self.assertRegex(outcome.err, says)
        return None


class EveryPlanTest(ClaimsCase):
    def test_families(self):
        """Searches on machines of several kinds, with all their memory and with the least that a plan fits into. Where there are many
        families, each is on one kind of machine."""
        machines, with_recompute = list(test_search.MACHINES), 0
        for number, family in enumerate(FAMILIES):
            model = self.small(family, **SIZES)
            verified = recomputing = bounded = 0
            for machine in machines if len(FAMILIES) == 1 else [machines[number % len(machines)]]:
                for ranks in RANKS:
                    cluster = self.folder / 'cluster.json'
                    cluster.write_text(test_search.cluster(machine, ranks))
                    flags = ['--cluster', cluster, '--micro-batches', 8, '--precision', 'bf16' if ranks == 8 else 'f32']
                    outcome, _, _ = self.plan(model, *flags, '--memory-limit', 1, code=3)
                    least = re.search(r'these would fit: --memory-limit (\d+)', outcome.err)
                    for limit in [[]] + ([['--memory-limit', least[1]]] if least else []):
                        with self.subTest(family=family, machine=machine, ranks=ranks, limit=limit):
                            outcome, path, _ = self.plan(model, *flags, *limit)
                            said, claims = json.loads(outcome.out), self.verify(model, path)
                            self.assertTrue(claims['verified'])
                            self.assertEqual(said['cost_seconds'], claims['cost_nanoseconds'] / 1e9)
                            bound = claims['bound_nanoseconds']  # none where the model's rows of memory admit nothing
                            self.assertEqual(said['bound_seconds'], None if bound is None else bound / 1e9)
                            self.assertEqual(said['bytes_per_device']['arena'], claims['arena_bytes'])
                            self.assertEqual(said['bytes_per_device']['largest_live_set'], claims['peak_bytes'])
                            verified += 1
                            recomputing += said['recompute']['flops'] > 0
                            if bound is not None:
                                self.assertLessEqual(said['bound_seconds'], said['simulated_seconds'])
                                bounded += 1
            print(f'{family}: {verified} plans verified, {recomputing} of them recompute something, {bounded} have a bound', file=sys.stderr)
            self.assertGreater(verified, recomputing)
            with_recompute += recomputing > 0
        self.assertGreaterEqual(2 * with_recompute, len(FAMILIES), 'families of which a plan recomputes something')


class RecomputeTest(ClaimsCase):
    def test_recompute_costs_time_and_counts_in_the_bound(self):
        """On one device only recompute makes room, and nothing runs concurrently with operators: a tighter limit takes longer, and about as
        much longer by the bound: it leaves out one block, launches, and what packing takes beside the rows (docs/solver.md)."""
        layers = 12
        model = self.small('gpt', **{**SIZES, 'layers': layers, 'width': 256, 'tokens': 1024})
        flags = ['--cluster', 'h100:1', '--micro-batches', 8]
        free = json.loads(self.plan(model, *flags)[0].out)
        self.assertEqual(free['recompute']['flops'], 0)
        least = int(re.search(r'these would fit: --memory-limit (\d+)', self.plan(model, *flags, '--memory-limit', 1, code=3)[0].err)[1])
        needed = free['bytes_per_device']['arena'] + free['bytes_per_device']['reserve']['total']
        before = free
        for part in (3, 2, 1):
            limit = least + (needed - least) * part // 4
            with self.subTest(limit=limit):
                outcome, path, _ = self.plan(model, *flags, '--memory-limit', limit)
                said = json.loads(outcome.out)
                self.verify(model, path)
                self.assertGreater(said['recompute']['flops'], before['recompute']['flops'])
                self.assertGreater(said['simulated_seconds'], before['simulated_seconds'])
                self.assertGreaterEqual(said['bound_seconds'], before['bound_seconds'])
                self.assertLessEqual(said['bound_seconds'], said['simulated_seconds'])
                print(f"limit {limit}: step {said['simulated_seconds']:.6f} s, bound {said['bound_seconds']:.6f} s", file=sys.stderr)
                before = said
        more = before['simulated_seconds'] - free['simulated_seconds']
        self.assertGreater(before['bound_seconds'] - free['bound_seconds'], more / 2)


class ChangedTest(ClaimsCase):
    def setUp(self):
        super().setUp()
        self.model = self.small_gpt(layers=2)
        _, self.path, self.certificate = self.plan(self.model, '--cluster', 'cpu:4', '--micro-batches', 2)
        self.good = json.loads(self.path.read_text())
        self.entries = json.loads(self.certificate.read_text())
        self.assertEqual(len({tuple(entry['name']) for entry in self.entries['certificates']}), len(self.entries['certificates']))

    def test_the_same_bytes(self):
        for threads in (1, 2):
            _, path, certificate = self.plan(self.model, '--cluster', 'cpu:4', '--micro-batches', 2, '--threads', threads, name='again.json')
            self.assertEqual(path.read_bytes(), self.path.read_bytes())
            self.assertEqual(certificate.read_bytes(), self.certificate.read_bytes())

    def test_claims(self):
        for name, value in self.good['claims'].items():
            for change in ([1, -1] if isinstance(value, int) else ['']):
                with self.subTest(name=name, change=change):
                    changed = copy.deepcopy(self.good)
                    changed['claims'][name] = value + change if change else ('1' if value.startswith('0') else '0') + value[1:]
                    self.path.write_text(json.dumps(changed))
                    says = 'costs of the profile of hash' if name == 'profile_hash' else f'the plan claims {name} .*, but '
                    self.verify(self.model, self.path, says)

    def test_entries(self):
        """Each kind of entry, and any of them."""
        places = []

        def collect(value, path):
            if isinstance(value, int):
                places.append(path)
            else:
                for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                    collect(item, path + (key,))

        collect(self.entries, ())
        by_kind = {}
        for place in places:
            by_kind.setdefault(next((part for part in reversed(place) if isinstance(part, str))), []).append(place)
        self.assertEqual(set(by_kind), {'version', 'name', 'bound', 'prices', 'messages'})
        draw = random.Random(1)
        for kind, those in by_kind.items():
            for place in draw.sample(those, min(len(those), 8)):
                with self.subTest(kind=kind, place=place):
                    changed = copy.deepcopy(self.entries)
                    at = changed
                    for part in place[:-1]:
                        at = at[part]
                    at[place[-1]] += draw.choice((-1, 1)) * draw.choice((1, 1 << 10, 1 << 40))
                    self.certificate.write_text(json.dumps(changed))
                    self.verify(self.model, self.path, r'certificate.*\[WL0309\]')

    def forge(self, plan, entries):
        """Changes a plan as somebody would who knows how its hashes are made."""
        text = json.dumps(entries)
        self.certificate.write_text(text)
        plan['claims']['certificate_hash'] = hashlib.sha256(text.encode()).hexdigest()
        self.path.write_text(json.dumps(plan))

    def test_forgery(self):
        """A bound without a proof is refused because of its value, not because of a hash."""
        least = min(self.entries['certificates'], key=lambda entry: entry['bound'])
        bound = least['bound']
        self.forge(self.good, self.entries)
        self.verify(self.model, self.path)
        least['bound'] += 1
        self.forge(self.good, self.entries)
        self.verify(self.model, self.path, rf'mesh {" x ".join(map(str, least["name"]))} claims the bound {bound + 1}, but proves {bound} ')
        least['bound'] = bound
        del self.entries['certificates'][-1]
        self.forge(self.good, self.entries)
        count = len(self.entries['certificates'])
        self.verify(self.model, self.path, f'is of {count} meshes, but {count + 1} can be chosen')

    def test_edits(self):
        """An edit removes the claims, from the plan that is used and from the file in programs; the rest of the plan is used."""
        edited = copy.deepcopy(self.good)
        edited['bucket_bytes'] *= 2
        self.path.write_text(json.dumps(edited))
        self.verify(self.model, self.path, 'it was edited since')
        outcome = self.succeed('emit', self.model, '--plan', self.path, '-o', self.folder / 'project')
        self.assertRegex(outcome.err, r"what '.*plan\.json' claims is dropped: the plan was edited since")
        written = json.loads((self.folder / 'project' / 'plan.json').read_text())
        self.assertEqual(written, {**edited, 'claims': None})
        self.path.write_text(json.dumps(self.good))
        outcome = self.succeed('emit', self.model, '--plan', self.path, '-o', self.folder / 'project')
        self.assertNotIn('dropped', outcome.err)
        self.assertEqual(json.loads((self.folder / 'project' / 'plan.json').read_text()), self.good)

    def test_what_is_missing(self):
        self.certificate.unlink()
        self.verify(self.model, self.path, r'plan\.cert')
        common.windlass('plan', self.model, '--cluster', 'cpu:4', '--strategy', 'ddp', '--micro-batches', 2, '-o', self.path)
        self.verify(self.model, self.path, 'claims nothing')
        outcome = common.windlass('plan', self.model, '--verify', self.path, '-o', self.folder / 'other.json')
        self.assertEqual(outcome.code, 2)

    def test_emitted(self):
        """A project has the certificate of the plan that was searched for it, and not of an earlier one."""
        flags, project = ('--cluster', 'cpu:4', '--micro-batches', 2), self.folder / 'emitted'
        self.succeed('emit', self.model, *flags, '-o', project)
        self.verify(self.model, project / 'plan.json')
        self.succeed('emit', self.model, *flags, '--strategy', 'zero1', '-o', project)
        self.verify(self.model, project / 'plan.json', 'claims nothing')
        self.assertFalse((project / 'plan.cert').exists())

    def test_ratio(self):
        """A plan whose step is further above the bound than asked for is written, and the message says so."""
        flags = ('--cluster', 'h200:8', '--work-limit', 1)
        self.plan(self.model, *flags, '--max-ratio', 1e9, name='other.json')
        outcome, path, _ = self.plan(self.model, *flags, '--max-ratio', 1, name='ratio.json', code=5)
        self.assertGreater(json.loads(outcome.out)['step_over_bound'], 1)
        self.assertRegex(outcome.err, r'but --max-ratio is 1.0000.* \[WL0310\]')
        self.verify(self.model, path)
        outcome = common.windlass('plan', self.model, '--cluster', 'cpu:2', '--strategy', 'ddp', '--work-limit', 1)
        self.assertEqual(outcome.code, 2)

    def test_diff(self):
        _, other, _ = self.plan(self.model, '--cluster', 'cpu:4', '--micro-batches', 8, name='other.json')
        outcome = common.run([common.WINDLASS, 'diff', self.path, other, '--json'])
        fields = [field['field'] for difference in json.loads(outcome.out)['differences'] if difference['section'] == 'claims' for field in difference['fields']]
        self.assertLessEqual({'bound_nanoseconds', 'cost_nanoseconds'}, set(fields))


if __name__ == '__main__':
    FAMILIES = sys.argv[1:] or FAMILIES
    del sys.argv[1:]
    common.main()
