"""Random legal plans as emitted programs under MPI: two steps give what the interpreter gives for the unplanned graph (design §2).

    test_random_programs.py [FAMILY...]     of all families where none is named
"""

import sys

import common
import equivalence
import test_plans
import test_program

PLANS, RANKS = 8, (2, 4)
FAMILIES = test_plans.FAMILIES


class RandomProgramsTest(test_program.ProgramCase, test_plans.PlansCase):
    def test_families(self):
        for family in FAMILIES:
            setup = self.setup_of_family(family)
            judge = equivalence.Equivalence(setup)
            reference = self.reference(judge)
            for seed in range(PLANS):
                ranks = RANKS[seed % len(RANKS)]
                plan = self.folder / f'{family}-{seed}.json'
                equivalence.execute(judge.opt, '--random-plan', setup.input, '--cluster', f'cpu:{ranks}', '--seed', seed,
                                    '--micro-batches', setup.micro_batches, '--clip', '-o', plan)
                with self.subTest(family=family, seed=seed, ranks=ranks):
                    try:
                        judge.compare(reference, self.dump_of_program(setup, ranks, '--plan', plan), 'f32',
                                      ('loss', 'grad_norm', 'gradient', 'parameter', 'state'))
                    except equivalence.Failure as failure:
                        self.fail(str(failure))
            print(f"{family}: {PLANS} programs, worst {judge.worst['f32']:.1e} of {equivalence.BOUNDS['f32']:.0e}", file=sys.stderr)


if __name__ == '__main__':
    FAMILIES = sys.argv[1:] or FAMILIES
    del sys.argv[1:]
    common.main()
