"""The installed tree works by itself: check, emit, a build of what was emitted, training, documentation."""

import os
import pathlib

import common

BUILD = pathlib.Path(os.environ.get('WINDLASS_BUILD', common.ROOT / 'build'))


class InstallTest(common.Case):
    def run_well(self, *words, **options):
        done = common.run(words, **options)
        self.assertEqual(done.code, 0, f'{words}\n{done.out[-3000:]}{done.err[-3000:]}')
        return done

    def test_install(self):
        place = self.folder / 'a place'
        self.run_well('cmake', '--install', BUILD, '--prefix', place)
        for name in ('windlass', 'windlass-opt', 'windlass-run', 'windlass-solve', 'windlass-lsp-server'):
            self.assertIn(name, self.run_well(place / 'bin' / name, '--help').out)
        for name in ('README.md', 'docs/architecture.md', 'docs/diagnostics.md'):
            self.assertTrue((place / 'share/doc/windlass' / name).exists(), name)
        for name in ('bash-completion/completions/windlass', 'zsh/site-functions/_windlass', 'fish/vendor_completions.d/windlass.fish'):
            self.assertTrue((place / 'share' / name).exists(), name)
        pages = {page.name for page in (place / 'share/man/man1').iterdir()}
        self.assertIn('windlass.1', pages)
        self.assertIn('windlass-place-experts.1', pages)
        for name in ('train', 'cluster'):
            self.assertTrue((place / f'share/windlass/{name}.schema.json').exists())

        tool, model, elsewhere = place / 'bin' / 'windlass', self.small_gpt(), self.folder / 'elsewhere'
        elsewhere.mkdir()
        data = self.folder / 'data.txt'
        data.write_bytes(bytes(range(32, 127)) * 60)
        # Nothing of the build tree may be needed: no variable of its tests, another home, another folder. (Only the
        # cache of programs is shared, to save time.)
        env = {'WINDLASS': '', 'WINDLASS_BUILD': '', 'HOME': str(self.folder)}
        self.run_well(tool, 'check', model, env=env, cwd=elsewhere)
        self.run_well(tool, 'plan', model, '--cluster', 'cpu:2', '-o', 'plan.json', env=env, cwd=elsewhere)
        self.run_well(tool, 'emit', model, '--plan', 'plan.json', '-o', 'program', env=env, cwd=elsewhere)
        self.run_well('cmake', '-S', 'program', '-B', 'program/build', '-G', 'Ninja', cwd=elsewhere)
        self.run_well('cmake', '--build', 'program/build', cwd=elsewhere, timeout=900)
        # 'train' calls the model by its file; a program by itself calls it by its graph.
        self.run_well('program/run.sh', '--data', data, '--bytes', '--steps', 3, '--model-name', model.name, '-o', 'own', cwd=elsewhere)
        self.run_well(tool, 'train', model, '-n', 2, '--data', data, '--bytes', '--steps', 3, '-o', 'run', env=env, cwd=elsewhere, timeout=900)
        self.assertEqual((elsewhere / 'own/checkpoints/step-000003/manifest.json').read_bytes(),
                         (elsewhere / 'run/checkpoints/step-000003/manifest.json').read_bytes())
        self.run_well(tool, 'report', 'run', env=env, cwd=elsewhere)


common.main()
